import Base
import Crypto
import Identity
import Outbound
import Reactor
import Rules
import Store
import Transport

extension Instance {
    /// All metrics, in Prometheus' text format 0.0.4; the RPC names are OpenTelemetry's.
    func prometheusText() -> [UInt8] {
        var page = PrometheusPage()
        page.process(ProcessMetrics(), version: version, startedAt: startedAt)
        page.calls(of: router)
        page.single(
            "postern_unknown_method_calls_total", "counter", "Calls of services or methods that there are not.",
            Double(router.unknownMethodCalls.value))
        let metrics = server.metrics
        page.single("postern_connections_open", "gauge", "Connections now.", Double(metrics.connectionsOpen.value))
        page.single(
            "postern_connections_accepted_total", "counter", "Connections so far.",
            Double(metrics.connectionsAccepted.value))
        page.single(
            "postern_connections_refused_total", "counter", "Connections closed as they came, by a limit or the drain.",
            Double(metrics.connectionsRefused.value))
        page.credentials(self)
        page.tls(server.tls?.metrics, server)
        page.memory(self)
        page.single(
            "postern_received_bytes_total", "counter", "Bytes received at the RPC port.",
            Double(metrics.bytesReceived.value))
        page.single(
            "postern_sent_bytes_total", "counter", "Bytes sent at the RPC port.", Double(metrics.bytesSent.value))
        page.single(
            "postern_frames_refused_total", "counter", "Frames and requests against the protocol or its limits.",
            Double(metrics.framesRefused.value))
        page.passwords(self)
        page.guesses(project.guesses.counters)
        page.pool("signing", signingPool)
        page.outbound(self)
        page.project(project)
        page.quotas(project)
        page.mails(project)
        page.outbox(outboxGauges.census(of: project.outbox))
        page.secondFactors(project.secondFactorSignIns.counts)
        page.providers(project.providers.requestCounts)
        page.rows(project.store)
        page.journal(project.store)
        page.clock(project)
        page.callLog(router.callLog)
        page.backups(project.backups)
        if let statistics = try? project.store.statistics() { page.store(statistics) }
        return page.bytes
    }
}

extension PrometheusPage {
    mutating func passwords(_ instance: Instance) {
        pool("password", instance.passwordPool)
        single(
            "postern_password_pool_repeated_total", "counter",
            "Hashes begun once more because the thread that had begun them got no processor.",
            Double(instance.passwordPool.counts.repeated))
        single(
            "postern_password_pool_memory_bytes", "gauge", "Memory of the hashes that are computed now, at most.",
            Double(instance.passwordPool.counts.memoryByteCount))
        single(
            "postern_password_pool_memory_peak_bytes", "gauge", "The highest value of the memory of hashes so far.",
            Double(instance.passwordPool.counts.memoryPeakByteCount))
        single(
            "postern_password_arena_bytes", "gauge", "Memory that is kept from one password hash to the next.",
            Double(PasswordArena.byteCount))
        single(
            "postern_password_arena_hashes_total", "counter",
            "Hashes in kept memory. If it stands still, each hash asks the system for memory.",
            Double(PasswordArena.hashCount))
        single(
            "postern_import_costly_hashes_refused_total", "counter", "Rows of imports whose hash costs too much.",
            Double(instance.project.passwords.refusedImports.value))
        passwordHashes(instance.project)
    }

    mutating func credentials(_ instance: Instance) {
        let metrics = instance.server.metrics
        let use = instance.router.callerUse
        single(
            "postern_connections_unauthenticated", "gauge", "Connections without a credential.",
            Double(instance.server.unauthenticatedCount))
        single(
            "postern_connections_without_credential_ended_total", "counter",
            "Connections that showed no credential in time.", Double(metrics.connectionsWithoutCredentialEnded.value))
        single(
            "postern_connections_displaced_total", "counter",
            "Connections without a credential that gave up their place for a new one.",
            Double(metrics.connectionsDisplaced.value))
        single(
            "postern_connections_unknown_total", "counter", "Connections whose first byte is of no known protocol.",
            Double(metrics.connectionsUnknown.value))
        single(
            "postern_caller_connections_refused_total", "counter",
            "Calls refused because their credential had too many connections.", Double(use.connectionsRefused.value))
        single(
            "postern_caller_streams_refused_total", "counter",
            "Streams refused because their credential had too many.", Double(use.streamsRefused.value))
        single(
            "postern_http_connections_open", "gauge", "Connections of the HTTP port.",
            Double(instance.httpMetrics.connectionsOpen.value))
        single(
            "postern_http_connections_displaced_total", "counter",
            "Connections of the HTTP port closed for a new one.",
            Double(instance.httpMetrics.connectionsDisplaced.value))
        single("postern_caller_streams_open", "gauge", "Streams of all credentials.", Double(use.streamsOpen.value))
    }

    /// Appends the memory of connections, and how many connections were closed for it.
    mutating func memory(_ instance: Instance) {
        let memory = instance.server.memory
        let metrics = instance.server.metrics
        single(
            "postern_connection_memory_bytes", "gauge", "Memory of all connections: requests and answers.",
            Double(memory.byteCount))
        single(
            "postern_connection_memory_peak_bytes", "gauge", "The highest value of the memory of connections so far.",
            Double(memory.peakByteCount))
        single(
            "postern_connections_closed_for_memory_total", "counter", "Connections closed for the memory they held.",
            Double(metrics.connectionsClosedForMemory.value))
        single(
            "postern_pages_waiting", "gauge", "Calls that wait for their turn to make a page of a list.",
            Double(metrics.pagesWaiting.value))
        single(
            "postern_pages_refused_total", "counter", "Pages of lists refused because connections held too much.",
            Double(metrics.pagesRefused.value))
    }

    /// Appends the times of the next signing keys, and the counts of identity providers, hooks and mail templates.
    mutating func project(_ project: Project) {
        signingKeys(project.signingKeys)
        hooks(project.hookFailures)
        single(
            "postern_provider_keys_checked_total", "counter", "Keys of identity providers checked for a token.",
            Double(project.providers.checkedKeys.value))
        single(
            "postern_provider_key_time_refused_total", "counter",
            "Key sets and documents not read: their tenant's processor time was spent.",
            Double(project.providers.refusedKeyTimes.value))
        single(
            "postern_mail_template_fallbacks_total", "counter",
            "Mails in the server's own words, because the template's were too long.",
            Double(project.oobDelivery.templateFallbacks.value))
    }

    mutating func outbound(_ instance: Instance) {
        pool("outbound", instance.outboundPool)
        single(
            "postern_outbound_lookups_running", "gauge",
            "Lookups of names, also those for whose answer no request waits any more.",
            Double(instance.nameLookups.runningCount))
    }

    mutating func pool(_ name: String, _ pool: WorkerPool) {
        let counts = pool.counts
        let prefix = "postern_\(name)_pool"
        single("\(prefix)_queued", "gauge", "Work that waits for a thread of the pool.", Double(counts.queued))
        single("\(prefix)_running", "gauge", "Work that runs on a thread of the pool.", Double(counts.running))
        single("\(prefix)_done_total", "counter", "Work that the pool has done.", Double(counts.done))
        single("\(prefix)_refused_total", "counter", "Work refused by a full queue.", Double(counts.refused))
        single("\(prefix)_expired_total", "counter", "Work dropped past its deadline.", Double(counts.expired))
        single(
            "\(prefix)_waited_seconds_total", "counter", "How long all work waited for a thread.",
            pool.waited / .seconds(1))
    }

    mutating func callLog(_ calls: CallLog) {
        single(
            "postern_access_log_lines_total", "counter", "Lines written to the access log.",
            Double(calls.sink?.written.value ?? 0))
        single(
            "postern_access_log_dropped_total", "counter",
            "Lines that its destination did not take, or not in time.", Double(calls.sink?.dropped.value ?? 0))
        single(
            "postern_slow_calls_total", "counter", "Unary calls that took as long as slow_call_millis.",
            Double(calls.slowCalls.value))
    }

    mutating func passwordHashes(_ project: Project) {
        single(
            "postern_password_hash_cpu_seconds_total", "counter", "Processor time of password hashes.",
            project.passwords.computed.processorSeconds)
        family("postern_password_hashes_total", "counter", "Password hashes computed, by kind.")
        for (kind, count) in project.passwords.computed.all {
            value("postern_password_hashes_total", #"kind="\#(kind.rawValue)""#, Double(count))
        }
    }

    mutating func quotas(_ project: Project) {
        family("postern_quota_refused_total", "counter", "Calls refused with QUOTA_EXCEEDED, by quota.")
        for (quota, count) in project.tenants.quotas.refusalCounts {
            value("postern_quota_refused_total", #"quota="\#(quota.rawValue)""#, Double(count))
        }
        single(
            "postern_idempotency_refused_total", "counter", "Calls refused with TOO_MANY_IDEMPOTENCY_KEYS.",
            Double(project.idempotencyRefusals.value))
        single(
            "postern_anonymous_users_expired_total", "counter", "Unused anonymous users that were deleted.",
            Double(project.anonymousExpiry.expiredCount.value))
    }

    mutating func guesses(_ counters: GuessCounters) {
        single(
            "postern_guesses_refused_by_account_total", "counter",
            "Attempts refused because of earlier ones on the account.",
            Double(counters.refusedByAccount.value))
        single(
            "postern_guesses_refused_by_address_total", "counter",
            "Attempts refused because of earlier ones from the address.",
            Double(counters.refusedByAddress.value))
        single(
            "postern_guesses_delayed_total", "counter", "Attempts from an unknown device and address that had to wait.",
            Double(counters.delayed.value))
        single(
            "postern_guesses_waiting", "gauge", "Attempts from an unknown device and address that wait now.",
            Double(counters.waiting.value))
        single(
            "postern_guesses_turned_away_total", "counter", "Attempts refused because too many were waiting.",
            Double(counters.waitingRefused.value))
        single(
            "postern_guesses_not_kept_total", "counter", "Wrong guesses that a restart would forget.",
            Double(counters.forgotten.value))
    }

    mutating func mails(_ project: Project) {
        single(
            "postern_continue_urls_refused_total", "counter",
            "Continue URLs refused because their tenant does not list them.",
            Double(project.continueURLs.refused.value))
        single(
            "postern_continue_urls_unlisted_total", "counter",
            "Continue URLs of tenants without a list, which take any.", Double(project.continueURLs.unlisted.value))
        single(
            "postern_email_recoveries_refused_total", "counter",
            "Changes of an email refused because the account has too many open ways back.",
            Double(project.oobDelivery.recoveriesRefused.value))
        single(
            "postern_mail_taken_over_total", "counter",
            "Messages of a cluster's node that did not say what became of them: they may come twice.",
            Double(project.mailer.takenOverCount.value))
        deliveries(project.mailer.counts)
    }

    mutating func clock(_ project: Project) {
        single(
            "postern_clock_wrong", "gauge", "1 while the machine's clock is not believed.", project.time.isWrong ? 1 : 0
        )
        single(
            "postern_clock_difference_seconds", "gauge", "The machine's clock minus the server's.",
            Double(project.time.difference.value) / 1e6)
        single(
            "postern_clock_jumps_total", "counter", "Steps of the machine's clock by more than five minutes.",
            Double(project.time.jumps.value))
        single(
            "postern_sweeps_put_off_total", "counter", "Sweeps that waited for the clock to be proven.",
            Double(project.sweepsPutOff.value))
        single(
            "postern_event_faults_total", "counter", "Events that the sweep found missing or altered.",
            Double(project.eventUpkeep.faults.value))
        single(
            "postern_denied_calls_forgotten_total", "counter", "Refused calls that no event tells of.",
            Double(project.callers.deniedCalls.forgottenCount))
    }
}

extension PrometheusPage {
    mutating func backups(_ backups: Backups) {
        single(
            "postern_backup_last_success_timestamp_seconds", "gauge",
            "When the last whole backup was taken; 0 if none is known.",
            Double(backups.lastWholeAt?.microseconds ?? 0) / 1_000_000)
        single(
            "postern_backup_failures_total", "counter", "Backups that failed or were broken off.",
            Double(backups.failures.value))
    }
}
