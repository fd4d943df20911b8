"""What companion systems share: sessions, retrieval, guards."""
