"""Regular expressions of checked strings, in the syntax that JSON schemas (ECMA 262) and Python share.

Each accepts the same strings as the corresponding check; a test compares them.
"""

import re

from kumulus.model.names import LABEL_LENGTH, OWN_PREFIX, SUBDOMAIN_LENGTH

_LABEL = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_NAME = f"[A-Za-z0-9](?:[-A-Za-z0-9_.]{{0,{LABEL_LENGTH - 2}}}[A-Za-z0-9])?"
_PREFIX = rf"(?=[^/]{{1,{SUBDOMAIN_LENGTH}}}/){_SUBDOMAIN}/"
_ANY_CASE = _PREFIX.replace("a-z0-9", "A-Za-z0-9")
_NOT_OURS = rf"(?!(?:[^/]*\.)?{OWN_PREFIX.replace('.', '[.]')}/)"

LABEL = f"^{_LABEL}$"
SUBDOMAIN = f"^{_SUBDOMAIN}$"
SUBDOMAIN_OR_EMPTY = f"^(?:{_SUBDOMAIN})?$"
LABEL_VALUE = "^(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
LABEL_KEY = f"^(?:{_PREFIX})?{_NAME}$"
LABEL_KEY_OR_EMPTY = f"^(?:(?:{_PREFIX})?{_NAME})?$"
FREE_LABEL_KEY = f"^{_NOT_OURS}(?:{_PREFIX})?{_NAME}$"
FEATURE = r"^(?=.{1,253}$)[A-Z][a-zA-Z0-9]*(?:/[a-zA-Z][a-zA-Z0-9]*)*$"
NODE_LABEL_KEY = f"^(?:topology[.]{OWN_PREFIX.replace('.', '[.]')}/{_NAME}|{FREE_LABEL_KEY[1:-1]})$"
FREE_ANNOTATION_KEY = f"^{_NOT_OURS}(?:{_ANY_CASE})?{_NAME}$"
PREFIXED_KEY = f"^{_PREFIX}{_NAME}$"

_DIGITS = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_SUFFIX = "(?:[eE][+-]?0*(?:100|[0-9]{1,2})|[numkMGTPE]|[KMGTPE]i)?"
# A quantity is never negative, except for a zero with a sign.
_QUANTITY = f"(?!-[0-9.]*[1-9])[+-]?{_DIGITS}{_SUFFIX}"
QUANTITY = f"^{_QUANTITY}$"
WHOLE_QUANTITY = rf"^(?![+-]?[0-9]*\.[0-9]*[1-9][0-9]*$){_QUANTITY}$"
CHANGE = f"^[+-]?{_DIGITS}{_SUFFIX}$"

_DURATION = f"(?:{_DIGITS}(?:ns|us|µs|ms|s|m|h))+"
DURATION = f"^{_DURATION}$"
BLANKS_AROUND_DURATION = rf"^\s*{_DURATION}\s*$"

_TO_100 = r"0*(?:100(?:\.0*)?|[0-9]{1,2}(?:\.[0-9]*)?|\.[0-9]+)"
ANY_PER_CENT = r"^\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?%\s*$"
PER_CENT = rf"^(?![0.\s]*%?\s*$)\s*\+?{_TO_100}\s*%?\s*$"
AMOUNT_SHARE = r"^0*(?:100(?:\.0+)?|[0-9]{1,2}(?:\.[0-9]+)?)%$"

_ORDINALS = "[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*"
NODE_NAME = rf"^(?:.+-(?:[0-9]+|\[{_ORDINALS}\])|{SUBDOMAIN[1:-1]})$"

NOT_BLANK = r"\S"
NO_BLANKS_AROUND = r"^\S(?:.*\S)?$"
VARIABLE = "^[A-Za-z_][A-Za-z0-9_]*$"
OWNER_KIND = "^[A-Z][A-Za-z0-9]*$"
CHART_REPOSITORY = "^(?:https|http|oci)://"

_OCTET = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS = rf"{_OCTET}(?:\.{_OCTET}){{3}}"


def literal(name: str) -> str:
    """A pattern that matches one name."""
    return name.replace(".", r"\.")


def network(longest_prefix: int) -> str:
    """An IPv4 network with a prefix up to a length, or a mask; a pattern cannot check that no host bits are set."""
    prefixes = "|".join(str(length) for length in range(longest_prefix, -1, -1))
    return f"^{_ADDRESS}/(?:(?:{prefixes})|{_ADDRESS})$"


def whole(pattern: re.Pattern[str]) -> str:
    """The pattern of a check's full match, without named groups, whose syntax is Python's own."""
    return f"^(?:{re.sub(r'[?]P<[A-Za-z]+>', '?:', pattern.pattern)})$"
