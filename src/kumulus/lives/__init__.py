"""How pods live and what they use, as objects of KWOK's: pure functions from the stack file's models to manifests.

KWOK's stages are documented at https://kwok.sigs.k8s.io/docs/user/stages-configuration/; what was read in its code is
said where it matters. docs/pods.md is for users, docs/decisions/pod-lifecycles.md says why it is done like this.
"""
