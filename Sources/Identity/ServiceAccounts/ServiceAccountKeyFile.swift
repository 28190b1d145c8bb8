import Base
import Crypto
import JSON
import Messages

extension ServiceAccountDirectory {
    /// The JSON key file that Admin SDKs read. The SDKs need a `token_uri` in it. Nothing is served there, because a
    /// service account calls with JWTs that it signs itself.
    func keyFile(of account: ServiceAccount, _ pair: SigningKey) -> Secret {
        let pem = PEM.encode("PRIVATE KEY", pair.exportDER())
        var json = JSONWriter(isPretty: true)
        json.beginObject()
        json.member("type", text: "service_account")
        json.member("project_id", text: projectID)
        json.member("private_key_id", text: pair.publicKey.keyID)
        pem.withBytes {
            json.name("private_key")
            json.string($0)
        }
        json.member("client_email", text: account.email)
        json.member("client_id", text: account.serviceAccountID)
        json.member("token_uri", text: Text(unchecked: issuer.bytes + [UInt8]("/token".utf8)))
        json.endObject()
        return Secret(json.bytes)
    }
}
