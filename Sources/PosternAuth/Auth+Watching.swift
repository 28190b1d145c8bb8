extension Auth {
    /// Starts, keeps or ends the watch. There is a watch exactly while a user is signed in and somebody listens. A
    /// refused watch is started again with the next tokens, because the server then takes calls again.
    func rearmWatching(_ state: inout State, hasNewTokens: Bool) {
        let wanted = state.observers.isEmpty ? nil : state.currentUser
        if let watching = state.watching {
            let watch = watching.watch
            if let wanted, watch.user === wanted, !(hasNewTokens && watch.isRefused) { return }
            watching.task.cancel()
            state.watching = nil
        }
        guard let wanted else { return }
        let watch = UserWatch(wanted)
        state.watching = Watching(watch: watch, task: Task { await watch.run() })
    }
}
