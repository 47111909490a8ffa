"""`/v1`: what people's programs ask of the gateway. What has nothing to serve yet has no route."""
