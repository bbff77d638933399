"""Wrong answers to lesson 13: no tool at all, an error that helps nobody, a crash; a description that says no when; a hook that allows."""

from __future__ import annotations

_DOC = '"""Tell the prices of an article.\n\n    Args:\n        article: Its name.\n    """'
_HEAD = "---\nname: outliers\ndescription: {}\n---\n"
_DENY = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "No CSV files are written here."}}'

WRONG: dict[str, tuple[str, str, str]] = {
    "13.tool": (
        f"async def price_spread(_, article: str) -> str:\n    {_DOC}\n    return f'{{min(PRICES[article])}} to {{max(PRICES[article])}}'",
        f"@tool\nasync def price_spread(_, article: str) -> str:\n    {_DOC}\n    return f'{{min(PRICES[article])}} to {{max(PRICES[article])}}'",
        (
            f"@tool\nasync def price_spread(_, article: str) -> str:\n    {_DOC}\n    found = PRICES.get(article)\n"
            "    return f'{min(found)} to {max(found)}' if found else f'no {article}, only tea'"
        ),
    ),
    "13.skill": (
        'MY_SKILL = """# Outliers\\nShow the largest values.\\nChange nothing."""',
        f'MY_SKILL = """{_HEAD.format("All about outliers.")}1. Show the largest values.\n2. Change nothing.\n"""',
        f'MY_SKILL = """{_HEAD.format("Use it when somebody asks for outliers.")}TODO\n"""',
    ),
    "13.hook": (
        f"def no_overwriting(said):\n    if '.to_csv(' in said['tool_input'].get('code', ''):\n        return {_DENY}",
        f"def no_overwriting(said):\n    code = str(said['tool_input'])\n    if 'csv' in code:\n        return {_DENY}",
        "def no_overwriting(said):\n    if '.to_csv(' in str(said['tool_input']):\n        return {'hookSpecificOutput': {'hookEventName': 'PreToolUse', 'permissionDecision': 'deny'}}",
    ),
}
