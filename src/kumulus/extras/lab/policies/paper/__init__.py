"""The six policies of the FGD paper (Weng et al., USENIX ATC 2023), under the paper's names; each a policy file."""
