"""Lives of a stream that hypothesis searches: publisher, journal and registry as they are, and a witness of its own."""
