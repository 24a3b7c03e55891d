"""The policy pack: what a team's stack may have, said by a preview before it is made."""
