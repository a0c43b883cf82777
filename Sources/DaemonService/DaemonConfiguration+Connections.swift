import Model
import URISyntax
import Upstream

extension DaemonConfiguration {
    /// Reads the settings for connections to origins.
    mutating func readConnections(_ reader: inout SettingsReader) {
        switch reader.text("early-connect", default: "on") {
        case "on", "true": proxy.connectsEarly = true
        case "off", "false": proxy.connectsEarly = false
        case let text: reader.fault("early-connect is on or off, not '\(text)'")
        }
        if let text = reader.text("doh-url") {
            // libcurl accepts no other scheme, and would show a password in its messages.
            if let url = try? AbsoluteURL(text), url.scheme == .https, url.userinfo == nil {
                upstream.dohURL = text
            } else {
                reader.fault(
                    "doh-url is the https URL of a DNS server, such as https://9.9.9.9/dns-query, not '\(text)'"
                )
            }
        }
        keepsTLSTickets = reader.isOn("keep-tls-tickets")
        upstream.usesFastOpen = reader.isOn("tcp-fast-open")
    }
}
