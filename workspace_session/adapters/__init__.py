"""Adapters: what other SDKs expect of a store, each in a module that needs only its own SDK."""
