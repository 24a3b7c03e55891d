"""The policy pack: what a team's stack may have, told by a preview before it is made."""
