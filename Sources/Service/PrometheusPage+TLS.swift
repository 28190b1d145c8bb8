import Base
import Transport

extension PrometheusPage {
    /// Appends the counts of TLS; all are 0 on a server without it.
    mutating func tls(_ metrics: TLSMetrics?, _ server: Server) {
        let metrics = metrics ?? TLSMetrics()
        single(
            "postern_tls_certificate_expiry_seconds", "gauge",
            "When the certificate in use expires, in seconds since 1970.", Double(metrics.certificateExpiry.value))
        single(
            "postern_tls_reloads_total", "counter", "Times that certificates were read again and taken.",
            Double(metrics.reloads.value))
        single(
            "postern_tls_reload_failures_total", "counter",
            "Times that what was read again was no good and the former stayed.", Double(metrics.reloadFailures.value))
        single(
            "postern_tls_handshakes_total", "counter", "Handshakes that succeeded.", Double(metrics.handshakes.value))
        single(
            "postern_tls_handshakes_in_flight", "gauge", "Handshakes that have begun and not ended.",
            Double(server.handshakeCount))
        single(
            "postern_tls_handshakes_failed_total", "counter", "Handshakes that either side refused.",
            Double(metrics.handshakesFailed.value))
        single(
            "postern_tls_handshakes_displaced_total", "counter", "Handshakes ended because there were too many.",
            Double(server.metrics.handshakesDisplaced.value))
        single(
            "postern_tls_handshakes_timed_out_total", "counter", "Handshakes that took too long.",
            Double(server.metrics.handshakesTimedOut.value))
        single(
            "postern_tls_sessions_failed_total", "counter", "Connections that broke TLS after their handshake.",
            Double(metrics.sessionsFailed.value))
        single(
            "postern_plaintext_refused_total", "counter", "Connections from other machines that spoke no TLS.",
            Double(metrics.plaintextRefused.value))
        single(
            "postern_proxy_headers_refused_total", "counter",
            "Connections of proxies that were closed for their header.",
            Double(server.proxyHeadersRefused.value))
        single(
            "postern_connections_silent_total", "counter", "Connections whose peer did not answer a PING.",
            Double(server.metrics.connectionsSilent.value))
    }
}
