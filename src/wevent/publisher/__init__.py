"""The publisher: core and noise put together; one call is one slot."""

from wevent.publisher.publisher import Publisher

__all__ = ["Publisher"]
