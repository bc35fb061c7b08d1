"""The HTTP service: routes, tokens and the page, over the same session, registry and journal as `wevent publish`.

It has no rule of its own about privacy, membership or slots.
"""
