"""The types of the kinds that are served: what bodies must have, and OpenAPI documents."""
