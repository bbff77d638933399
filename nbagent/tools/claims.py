"""Finds where an answer says that the notebook was verified or is reproducible, to be held against what really ran.

Words only, of the languages that it knows; a sentence that says no ("not verified", "couldn't verify") claims nothing.
It must not know of runs. Read `claim_in`.
"""

from __future__ import annotations

import re

_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+|\s[–—]\s")
_CODE = re.compile(r"```.*?```|`[^`\n]*`|^>.*$", re.DOTALL | re.MULTILINE)
_CLAIMS = re.compile(
    r"\b(?:verified|checked|tested|confirmed|ran|runs|(?:was|were|been|is|are|got)\s+(?:\w+\s+)?(?:re-?)?run|re-?ran|re-?runs|executed|executes|works?|reproduces?|reproduced)\b"
    r"[^.!?]{0,80}\b(?:(?:clean|fresh|new|restarted)\s+(?:jupyter\s+)?kernel|kernel\s+restart|restart(?:ed|ing)?\s+(?:the\s+|of\s+the\s+)?kernel)"
    r"|\b(?:clean|fresh|restarted)\s+kernel\b[^.!?]{0,60}\b(?:verified|confirmed|same|reproduc\w+|succeed\w*|passed|works?)\b"
    r"|\b(?:notebook|analysis|results?|it|everything)\b[^.!?]{0,30}\b(?:is|are|was|were)\s+(?:now\s+|fully\s+|therefore\s+)?(?:verified\b|reproducible\b)"
    r"|\bfully reproducible\b|\brestart\s*(?:&|and)\s*run\s+all\b[^.!?]{0,40}\b(?:works|passe[sd]|succe\w+|gives)\b"
    r"|\b(?:sauberen|frischen|neuen)\s+kernel\b[^.!?]{0,60}\b(?:geprüft|überprüft|verifiziert|gelaufen|läuft)"
    r"|\b(?:geprüft|überprüft|verifiziert|läuft)\b[^.!?]{0,60}\b(?:sauberen|frischen|neuen)\s+kernel\b",
    re.IGNORECASE,
)
_RESTARTED = re.compile(
    r"\brestarted\s+(?:the\s+)?(?:jupyter\s+)?kernel\b[^.!?]{0,40}\b(?:ran|run|re-?ran|executed)\b"
    r"|\b(?:runs|ran|works|executes|executed|reproduces)\b[^.!?]{0,60}\bafter\s+(?:a|the)\s+(?:kernel\s+)?restart\b"
    r"|\bclean(?:[ -]kernel)?[ -](?:run|verification)\b[^.!?\w]{0,6}(?:passed|succeeded|ok\b|✅|✓|✔)"
    r"|\b(?:re-?ran|re-?executed)\b[^.!?]{0,40}\b(?:notebook|everything)\b[^.!?]{0,40}\bfrom\s+scratch\b"
    r"|\b(?:neu\s+gestartet)\b[^.!?]{0,40}\b(?:ausgeführt|gelaufen|durchgelaufen)\b",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:vérifi|exécut|test|relanc|fonctionn)\w*\b[^.!?]{0,60}\b(?:nouveau\s+noyau|noyau\s+(?:propre|neuf|vierge|redémarré))"
    r"|\bredémarré\s+le\s+(?:noyau|kernel)\b[^.!?]{0,40}\bexécuté"
    r"|\b(?:verific|ejecut|comprob|prob|funcion|execut|test|esegui|funzion)\w*\b[^.!?]{0,60}\b(?:kernel|núcleo)\s+(?:limpio|nuevo|limpo|novo|pulito|nuovo)"
    r"|\brein(?:icié|iciado)\s+el\s+(?:kernel|núcleo)\b[^.!?]{0,40}\bejecut"
    r"|\b(?:провер|выполн|запу)\w*\b[^.!?]{0,60}\bчист\w+\s+(?:ядр|кернел)"
    r"|(?:干净|全新|乾淨)的?\s*(?:内核|核心|kernel)[^。！？]{0,30}(?:验证|驗證|运行|通过)|(?:验证|驗證|运行)[^。！？]{0,20}(?:干净|全新|乾淨)的?\s*(?:内核|核心|kernel)"
    r"|(?:クリーンな?|新しい|まっさらな)\s*カーネル[^。！？]{0,30}(?:検証|実行|確認)(?:済|し(?:た|ました))"
    r"|(?:클린|깨끗한|새로운|새)\s*커널[^.!?]{0,30}(?:검증|실행|확인)(?:됨|했|되었|완료)",
    re.IGNORECASE,
)
"""The same in other languages, as far as a few words go."""
_DENIES_ELSEWHERE = re.compile(
    r"\b(?:pas|jamais|sans|si|pour|pourr\w+|devr\w+|veuillez|non|no|nunca|sin|para|podr\w+|deber\w+|não|sem|se|per|potr\w+|dovr\w+|не|нет|если|чтобы|можно)\b"
    r"|未|没有|沒有|不|如果|可以|请|ません|ない|なかった|ください|않|못|아직",
    re.IGNORECASE,
)
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_WRAPPED = re.compile(
    r"(?<![.!?:;|\s])[ \t]*\n[ \t]*(?=[^\W\d_A-ZÀ-ÖØ-ÞА-Я]|[*_]{1,2}[a-zß-öø-ÿ])"
    r"|(?<=[ \t](?:clean|fresh))[ \t]*\n[ \t]*(?=[A-Z])|(?<=[ \t](?:sauberen|frischen))[ \t]*\n[ \t]*(?=K)"
)
"""A line break inside of a sentence: the next line goes on in small letters, or must, after such a word."""
LONGEST = 60_000
"""Characters of an answer that are looked at."""
_DENIES = re.compile(
    r"\b(?:not|n't|never|no|nothing|none|neither|nor|hardly|cannot|without|unable|haven't|isn't|wasn't|didn't|couldn't|nicht|kein\w*|would|should|could|might|may|if|"
    r"whether|to\s+(?:verify|check|confirm)|before\s+you|you\s+can|you\s+may|please|recommend\w*|suggest\w*)\b",
    re.IGNORECASE,
)
_FLAWLESS = re.compile(
    r"\b(?:without|with\s+no|no|zero|ohne|keine?)\s+(?:(?:any|a|single|other|further|hidden|eine?n?)\s+){0,2}"
    r"(?:errors?|differences?|changes?|issues?|problems?|warnings?|failures?|exceptions?|doubt|surprises?|state|trouble|"
    r"deviations?|mismatch(?:es)?|discrepanc(?:y|ies)|hitch(?:es)?|complaints?|fehler\w*|unterschiede?|abweichung\w*|probleme?)\b",
    re.IGNORECASE,
)
"""What praises a result with a word that else denies: "runs without errors"."""
_ONLY_IF = re.compile(r"\b(?:if|unless|wenn|falls)\b", re.IGNORECASE)


def claim_in(text: str) -> str:
    """Return the first sentence that claims that the notebook was verified from a clean kernel, "" where none does."""
    for sentence in _SENTENCE.split(_WRAPPED.sub(" ", _CODE.sub(" ", _UNSEEN.sub("", text[:LONGEST])))):
        plain = _FLAWLESS.sub(" ", sentence)
        found = _CLAIMS.search(plain) or _RESTARTED.search(plain)
        if found is None:
            if _ELSEWHERE.search(sentence) and not _DENIES_ELSEWHERE.search(sentence):
                return " ".join(sentence.split())[:200]
            continue
        before = plain[plain.rfind(";", 0, found.start()) + 1 : found.end()]
        after = plain[found.end() :].partition(";")[0]
        if not _DENIES.search(before) and not _ONLY_IF.search(after):
            return " ".join(sentence.split())[:200]
    return ""
