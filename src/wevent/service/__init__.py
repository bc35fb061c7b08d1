"""The HTTP service: routes, tokens and pages over the session, registry and journal of `wevent publish`."""
