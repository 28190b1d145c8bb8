// What sign-ins are composed of.

extension Project {
    public var signIns: SignInPipeline {
        SignInPipeline(
            resources: resources, users: users, tokenCheck: tokenCheck, guesses: guesses,
            repeatedChanges: repeatedChanges, refusals: refusals,
            prover: SignInProver(resources: resources, tenants: tenants, guesses: guesses))
    }

    public var repeatedChanges: RepeatedChanges {
        RepeatedChanges(resources: resources, users: users, tokenCheck: tokenCheck)
    }

    public var refusals: SelfServiceRefusals { SelfServiceRefusals(resources: resources, tenants: tenants) }
}
