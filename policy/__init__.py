"""The policy pack: what a team's stack may have, told by `pulumi preview --policy-pack policy` before it is made."""
