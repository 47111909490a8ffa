"""What a running server tells about itself: metrics, log lines and spans. Each costs nothing until someone asks."""
