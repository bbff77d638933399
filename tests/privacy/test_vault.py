"""Secrets in texts: masked on the way out, put back on the way in, and nothing else changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbagent.core.errors import ToolError
from nbagent.tools.vault import PLACEHOLDER, Vault, pattern_of
from tests.privacy.planted import AROUND, KEYS, plain, planted, vault

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(["MIIEowIBAAKCAQEA" + "Zx9" * 16] * 3)
    + "\nQw12==\n-----END RSA PRIVATE KEY-----"
)


@pytest.mark.slow
@given(planted())
def test_a_planted_secret_is_masked_and_comes_back_exactly(case: tuple[str, str]) -> None:
    text, secret = case
    box = vault()
    masked = box.mask(text)
    assert secret not in masked
    assert box.reveal(masked) == text


@given(plain(300))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    box = vault()
    assert box.reveal(box.mask(text)) == text


@pytest.mark.slow
@given(planted())
def test_what_is_masked_already_stays_as_it_is(case: tuple[str, str]) -> None:
    box = vault()
    masked = box.mask(case[0])
    assert box.mask(masked) == masked
    assert vault().mask(masked) == masked, "also in a kernel that knows none of it"


@pytest.mark.slow
@given(KEYS, st.sampled_from(AROUND), st.integers(10, 60))
def test_of_a_key_that_was_met_once_no_piece_goes_out(key: str, around: str, cut: int) -> None:
    """Tools cut long lines: the rest of a key has no shape any more."""
    box = vault()
    box.mask(around.format(key))
    head, tail = key[: len(key) * cut // 64], key[-(len(key) * cut // 64) :]
    for piece in (f"{head}…", f"… {tail}", f"so {head}"):
        masked = box.mask(piece)
        assert key[:24][-9:] not in masked or len(head) < 24, masked
        assert len(tail) < 12 or tail[-8:] not in masked, masked
        assert box.reveal(masked) == piece


@pytest.mark.parametrize(
    "text",
    [
        "password = getpass.getpass()", "token: str = tokens.next()", "max_tokens = 16000", "api_key=None", "The key is under the mat.",
        'api_key = os.environ["OPENAI_API_KEY"]', "password: Optional[SecretStr] = None", 'token_url = "https://login.example/oauth"',
        'password = "${DB_PASSWORD}"', "postgres://me:{password}@host/db", "Bearer of good news", "def auth(token, secret): ...",
        'print("password: ")', "client = Client(api_key=settings.api_key)", "usage: 1200 tokens, 300 output tokens",
    ],
)  # fmt: skip
def test_code_and_prose_without_secrets_stay_readable(text: str) -> None:
    assert vault().mask(text) == text


def test_lines_of_a_private_key_are_masked_one_by_one_so_that_line_numbers_stay() -> None:
    box = vault()
    numbered = "\n".join(f"{n:6}\t{line}" for n, line in enumerate(PEM.splitlines(), 1))
    masked = box.mask(numbered)
    assert "Zx9" not in masked
    assert len(masked.splitlines()) == len(PEM.splitlines())
    assert box.reveal(box.mask(PEM)) == PEM and "Zx9" not in box.mask(PEM)
    assert all(secret.plain for secret in box.used(masked)), "no line break is hidden behind a placeholder"


def test_the_same_value_has_the_same_placeholder_and_another_value_another_one() -> None:
    box = vault()
    one, two = "ghp_" + "a1" * 18, "ghp_" + "b2" * 18
    assert PLACEHOLDER.findall(box.mask(f"{one} {two} {one}")) == [
        *(first := PLACEHOLDER.findall(box.mask(one))), *PLACEHOLDER.findall(box.mask(two)), *first,
    ]  # fmt: skip
    assert vault().mask(one) == box.mask(one), "and after a restart"


def test_two_values_with_one_hash_get_two_placeholders() -> None:
    box = Vault(lambda data: "0" * 8 + f"{len(data):024x}")
    one, two = "ghp_" + "a1" * 18, "ghp_" + "b2" * 20
    masked = box.mask(f"{one} {two}")
    assert box.reveal(masked) == f"{one} {two}"
    assert len(set(PLACEHOLDER.findall(masked))) == 2


@pytest.mark.parametrize("made_up", ["⟦secret:00000000⟧", "⟦secret:1⟧", "⟦SECRET: abc⟧", "⟦secret:12"])
def test_a_placeholder_that_the_model_made_up_is_refused_with_a_sentence(made_up: str) -> None:
    box = vault()
    box.mask("ghp_" + "a1" * 18)
    with pytest.raises(ToolError, match="stands for no secret"):
        box.reveal(f"x = '{made_up}'")
    with pytest.raises(ToolError, match="Copy a placeholder exactly"):
        box.used({"code": ["ok", {"deep": made_up}]})


def test_secrets_of_the_environment_are_known_wherever_they_stand_also_encoded() -> None:
    box = vault()
    box.learn_environment(
        {"DB_PASSWORD": "corr€ct/horse 9", "HOME": "/root", "SSH_AUTH_SOCK": "/tmp/agent.1", "MAX_TOKENS": "16000"}
    )
    text = 'it said corr€ct/horse 9, corr%E2%82%ACct%2Fhorse%209 and "corr\\u20acct/horse 9" in /root with 16000'
    masked = box.mask(text)
    assert "horse" not in masked and "/root" in masked and "16000" in masked
    assert box.reveal(masked) == text


def test_patterns_of_the_person_count_too() -> None:
    box = Vault(
        lambda data: data.hex().rjust(32, "0")[-32:], lambda: (pattern_of("CUST-*"), pattern_of(r"re:iban (\w+)"))
    )
    masked = box.mask("CUST-77ab paid from iban DE4411 today")
    assert masked.count("⟦secret:") == 2 and "paid from iban ⟦" in masked and masked.endswith(" today")


def test_images_and_ids_are_left_alone() -> None:
    box, key = vault(), "ghp_" + "a1" * 18
    blocks = [
        {"type": "image", "source": {"type": "base64", "data": key}},
        {"type": "tool_result", "tool_use_id": key, "content": [{"type": "text", "text": key}]},
    ]
    masked = box.masked(blocks)
    assert masked[0] == blocks[0] and masked[1]["tool_use_id"] == key and key not in masked[1]["content"][0]["text"]


def test_a_schema_may_have_types_of_any_kind_and_a_text_no_type_that_keeps_it_from_the_mask() -> None:
    """Servers of MCP list types, and have arguments that are called `type` or `id`."""
    box, key = vault(), "ghp_" + "a1" * 18
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}, "type": {"type": "string"}}}
    assert box.masked(schema) == schema
    for told in ({"type": "document", "text": key}, {"id": {"default": key}}, {"type": [key]}):
        assert key not in str(box.masked(told))


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(planted(), min_size=2, max_size=5))
def test_texts_one_after_the_other_all_come_back(cases: list[tuple[str, str]]) -> None:
    box = vault()
    masked = [box.mask(text) for text, _ in cases]
    assert [box.reveal(text) for text in masked] == [text for text, _ in cases]
