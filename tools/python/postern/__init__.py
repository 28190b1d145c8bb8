"""Client and token verifier for the Postern authentication server.

    import postern

    with postern.Client("127.0.0.1:7400", api_key=key) as client:
        user = client.users.get(tenant_id="acme", uid="ada").user

    with postern.TokenVerifier(client, tenants="acme") as verifier:
        token = verifier.verify(bearer_token)          # token.uid, token.claims["plan"], …

Everything may be used from any thread.
"""
from .client import TLS, Client
from .errors import PosternError
from .jwt import ANY_TENANT, DecodedToken, KeySet, OfflineVerifier
from .revocations import Revocation, RevocationFeed
from .verifier import TokenVerifier

__all__ = [
    "ANY_TENANT", "Client", "DecodedToken", "KeySet", "OfflineVerifier", "PosternError", "Revocation", "RevocationFeed",
    "TLS", "TokenVerifier",
]
