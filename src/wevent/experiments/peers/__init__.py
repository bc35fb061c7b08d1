"""Other published w-event mechanisms, corrected, to compare with: simulated only, never offered for publishing.

The ledger has no place for them (some read earlier true counts and share threshold noise over slots), so an accountant of
their own holds their windows.
"""

from wevent.experiments.peers.offered import PEERS, Peer
from wevent.experiments.peers.peer_accountant import PeerAccountant, PeerOverspent
from wevent.experiments.peers.peer_noise import PeerNoise

__all__ = ["PEERS", "Peer", "PeerAccountant", "PeerNoise", "PeerOverspent"]
