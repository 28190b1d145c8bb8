import Base
import Crypto
import JSON
import Reactor
import Synchronization

/// The provider's endpoints.
extension FakeIdentityProvider {
    func answer(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        state.withLock({ $0.onRequest })(request.path)
        switch state.withLock({ $0.misbehaviour }) {
        case .none: return endpoint(request)
        case .down: return json(["error": "temporarily_unavailable"], status: 503)
        case .silent: return .silence
        case .flood: return .flood(10_000_000)
        case .redirect: return .response(HTTPResponse(status: 302, fields: [("Location", request.path)], body: []))
        case .brokenJSON: return raw(#"{"issuer":"#)
        case .html: return .response(HTTPResponse(contentType: "text/html", body: Array("<html></html>".utf8)))
        case .duplicateMembers: return raw(#"{"keys":[],"keys":[],"sub":"a","sub":"b","issuer":"x","issuer":"y"}"#)
        case .nothing: return raw("{}")
        }
    }

    private func endpoint(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        switch (request.method, request.path) {
        case ("GET", "/.well-known/openid-configuration"): return discovery()
        case ("GET", "/jwks"): return jwks()
        case ("POST", "/token"): return token(request)
        case ("GET", "/userinfo"): return userInfo(request)
        case ("GET", "/me"): return facebook(request)
        case ("GET", "/debug_token"): return debugToken(request)
        case ("GET", "/user"), ("GET", "/user/emails"): return gitHub(request)
        case ("GET", "/2/users/me"): return twitter(request)
        case ("POST", "/tokeninfo"): return tokenInfo(request)
        case ("POST", "/introspect"): return introspect(request)
        case ("POST", let path) where path.hasPrefix("/applications/"): return gitHubCheck(request)
        default: return json(["error": "not_found"], status: 404)
        }
    }

    private func json(_ value: JSONValue, status: Int = 200, cacheControl: String? = nil) -> FakeHTTPServer.Reply {
        let fields = cacheControl.map { [(name: "Cache-Control", value: $0)] } ?? []
        return .response(
            HTTPResponse(status: status, contentType: "application/json", fields: fields, body: value.serialized()))
    }

    private func raw(_ text: String) -> FakeHTTPServer.Reply {
        .response(HTTPResponse(contentType: "application/json", body: Array(text.utf8)))
    }

    // MARK: OpenID Connect

    private func discovery() -> FakeHTTPServer.Reply {
        func at(_ path: String) -> JSONValue { .string(Text(server.url + path)) }
        let state = state.withLock { $0 }
        guard state.hasDiscovery else { return json(["error": "not_found"], status: 404) }
        var document: JSONValue =
            [
                "issuer": .string(state.discoveryIssuer ?? issuer),
                "jwks_uri": state.discoveryJWKS.map { .string($0) } ?? at("/jwks"),
                "token_endpoint": at("/token"),
                "userinfo_endpoint": at("/userinfo"), "introspection_endpoint": at("/introspect"),
                "authorization_endpoint": at("/authorize"),
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            ]
        for (name, value) in state.discoveryChanges { document = document.replacing(name, value) }
        return json(
            state.hasAuthorizationEndpoint ? document : document.replacing("authorization_endpoint", nil),
            cacheControl: state.cacheControl)
    }

    private func jwks() -> FakeHTTPServer.Reply {
        let (keys, issuers, cacheControl) = state.withLock { ($0.keys, $0.keyIssuers, $0.cacheControl) }
        let entries = keys.map { key -> JSONValue in
            var members = key.publicKey.jwk.members.map { member in
                JSONValue.Member(Text("\(member.name)"), .string(member.value))
            }
            members.append(.init("kid", .string(key.publicKey.keyID)))
            members.append(.init("alg", .string(Text(key.algorithm.rawValue))))
            members.append(.init("use", "sig"))
            if let issuer = issuers[key.publicKey.keyID] { members.append(.init("issuer", .string(issuer))) }
            return .object(members)
        }
        let others = state.withLock { $0.otherKeys }
        return json(["keys": .array(entries + others)], cacheControl: cacheControl)
    }

    /// RFC 6749 §4.1.3 with RFC 7636.
    private func token(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        let form = request.form
        guard let clientID = client(request) else { return json(["error": "invalid_client"], status: 401) }
        let grant = state.withLock { $0.codes.removeValue(forKey: form["code"] ?? "") }
        let challenge = form["code_verifier"].map { Self.challenge(Array($0.utf8)) } ?? ""
        guard form["grant_type"] == "authorization_code", let grant, grant.clientID == clientID,
            grant.redirectURI == form["redirect_uri"] ?? "", grant.challenge == challenge
        else { return json(["error": "invalid_grant"], status: 400) }
        let accessToken = accessToken(grant.user, clientID: clientID).withBytes { [UInt8]($0) }
        var answer: JSONValue = ["access_token": .string(Text(unchecked: accessToken)), "token_type": "Bearer"]
        if state.withLock({ $0.hasIDTokens }) {
            let idToken = idToken(grant.user, audience: Text(clientID), nonce: grant.nonce).withBytes { [UInt8]($0) }
            answer = answer.replacing("id_token", .string(Text(unchecked: idToken)))
        }
        return json(answer)
    }

    /// The client that proved itself, by the form or by Basic authentication.
    private func client(_ request: FakeHTTPServer.Request) -> String? {
        let (takesPosted, takesBasic) = state.withLock { ($0.takesPostedSecrets, $0.takesBasicSecrets) }
        var (id, secret) = takesPosted ? (request.form["client_id"], request.form["client_secret"]) : (nil, nil)
        if takesBasic, let basic = request.fields["authorization"], basic.hasPrefix("Basic "),
            let pair = Base64.standard.decode(Array(basic.dropFirst(6).utf8))
        {
            let parts = String(decoding: pair, as: UTF8.self).split(separator: ":").map(String.init)
            if parts.count == 2 { (id, secret) = (parts[0], parts[1]) }
        }
        guard let id, let secret, state.withLock({ $0.clients[id] }) == secret else { return nil }
        return id
    }

    private func grant(_ request: FakeHTTPServer.Request) -> Grant? {
        guard let field = request.fields["authorization"], field.hasPrefix("Bearer ") else { return nil }
        return state.withLock { $0.accessTokens[String(field.dropFirst(7))] }
    }

    private func userInfo(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard let grant = grant(request) else { return json(["error": "invalid_token"], status: 401) }
        return json(.object(userClaims(grant.user)))
    }

    private func tokenInfo(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard let grant = state.withLock({ $0.accessTokens[request.form["access_token"] ?? ""] }) else {
            return json(["error": "invalid_token"], status: 400)
        }
        return json([
            "aud": .string(Text(grant.clientID)), "azp": .string(Text(grant.clientID)),
            "sub": .string(grant.user.subject), "expires_in": "3599",
        ])
    }

    private func introspect(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard client(request) != nil else {
            return json(["error": "invalid_client"], status: state.withLock { $0.wrongClientStatus })
        }
        guard let grant = state.withLock({ $0.accessTokens[request.form["token"] ?? ""] }) else {
            return json(["active": false])
        }
        return json([
            "active": true, "client_id": .string(Text(grant.clientID)), "sub": .string(grant.user.subject),
        ])
    }

    // MARK: Others

    private func facebook(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard let grant = grant(request), let token = request.fields["authorization"]?.dropFirst(7),
            let secret = state.withLock({ $0.clients[grant.clientID] }),
            request.query["appsecret_proof"] == Hex.encode(HMACKey(Secret(secret)).tag(of: Array(token.utf8))).string
        else { return json(["error": ["code": 190]], status: 400) }
        return json([
            "id": .string(grant.user.subject), "name": .string(grant.user.name), "email": .string(grant.user.email),
            "picture": ["data": ["url": .string(grant.user.picture)]],
        ])
    }

    private func debugToken(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard request.fields["authorization"] == "Bearer client-1|secret-1" else {
            return json(["error": ["code": 190]], status: 400)
        }
        guard let grant = state.withLock({ $0.accessTokens[request.query["input_token"] ?? ""] }) else {
            return json(["data": ["is_valid": false]])
        }
        return json([
            "data": [
                "is_valid": true, "app_id": .string(Text(grant.clientID)), "user_id": .string(grant.user.subject),
                "expires_at": .integer(clock.now().seconds + 60),
            ]
        ])
    }

    /// A user without an email stands for a token without the scope user:email; `shown_email` is on the user's page.
    private func gitHub(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard let user = grant(request)?.user, let id = Int64(user.subject.string) else {
            return json(["message": "Bad credentials"], status: 401)
        }
        if request.path == "/user" {
            return json([
                "id": .integer(id), "login": "octocat", "name": .string(user.name),
                "avatar_url": .string(user.picture),
                "email": user.claims.first { $0.name == "shown_email" }?.value ?? .null,
            ])
        }
        if user.email.isEmpty { return json(["message": "Not Found"], status: 404) }
        return json([
            ["email": "other@example.com", "primary": false, "verified": true],
            ["email": .string(user.email), "primary": true, "verified": user.emailVerified ?? false],
        ])
    }

    private func gitHubCheck(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard let clientID = client(request), request.path == "/applications/\(clientID)/token" else {
            return json(["message": "Bad credentials"], status: 401)
        }
        let token = (try? JSONValue(parsing: request.body))?["access_token"]?.string ?? ""
        guard let grant = state.withLock({ $0.accessTokens[token] }), grant.clientID == clientID,
            let id = Int64(grant.user.subject.string)
        else { return json(["message": "Not Found"], status: 404) }
        return json(["app": ["client_id": .string(Text(clientID))], "user": ["id": .integer(id)]])
    }

    private func twitter(_ request: FakeHTTPServer.Request) -> FakeHTTPServer.Reply {
        guard let user = grant(request)?.user else { return json(["title": "Unauthorized"], status: 401) }
        return json([
            "data": [
                "id": .string(user.subject), "name": .string(user.name), "username": "x",
                "profile_image_url": .string(user.picture),
            ]
        ])
    }
}
