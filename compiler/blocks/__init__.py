"""What a plan is made of: one frozen class for every way in which the messages of a factor are computed.

The engine registers what it computes for each by its class (`engine/blocks/kinds.py`). A joint table stands beside the
pass that makes it (`compiler/discrete/networks.py`).
"""
