import Ahead
import Endless
import Library
import Lookahead
import Model

extension DaemonConfiguration {
    /// Reads what is fetched ahead of players.
    mutating func readAhead(_ reader: inout SettingsReader) {
        let mode = reader.text("look-ahead", default: "auto")
        if let mode = LookaheadMode(mode) {
            proxy.lookAhead = mode
        } else {
            reader.fault("look-ahead is off, auto or 1 to 600 seconds, not '\(mode)'")
        }
        if reader.text("keep-head") != nil {
            proxy.keepHead = reader.number("keep-head", in: 1...1_000_000, default: 1)
        }
        switch reader.text("beyond-head", default: "stream") {
        case "stream": proxy.leavesRestToOrigins = false
        case "origin": proxy.leavesRestToOrigins = true
        case let text: reader.fault("beyond-head is stream or origin, not '\(text)'")
        }
    }

    /// Reads how much is kept of live streams that are one endless body.
    mutating func readLiveWindow(_ reader: inout SettingsReader) {
        var limits = EdgeWindow.Limits()
        limits.bytes = reader.bytes(
            "live-window-size", in: 4_000_000...1_000_000_000_000, default: limits.bytes)
        if reader.text("live-window") == "off" {
            proxy.liveWindow = nil
        } else {
            limits.duration = reader.seconds(
                "live-window", in: 5...600, default: limits.duration)
            proxy.liveWindow = limits
        }
    }

    /// Reads how fast bodies are sent to players.
    mutating func readPace(_ reader: inout SettingsReader) {
        switch reader.text("pace", default: "off") {
        case "off": proxy.pace = .off
        case "line": proxy.pace = .line
        case let text:
            guard let rate = ByteSize.bytes(text),
                (10_000...1_000_000_000_000).contains(rate)
            else {
                return reader.fault(
                    "pace is off, line or bytes per second such as 500KB, not '\(text)'; \(ByteSize.units)"
                )
            }
            proxy.pace = .rate(rate)
        }
    }

    /// Reads the rules of downloads.
    mutating func readDownloads(_ reader: inout SettingsReader) {
        let most: Int64 = 1_000_000_000_000_000
        if reader.text("download-rate") != nil {
            downloads.rate = reader.bytes("download-rate", in: 1_000...most, default: most)
        }
        if reader.text("download-budget") != nil {
            downloads.dailyBytes = reader.bytes("download-budget", in: 0...most, default: most)
        }
        if let text = reader.text("quiet-hours") {
            downloads.quietHours = DownloadRules.Hours(text)
            if downloads.quietHours == nil {
                reader.fault(
                    "quiet-hours are two times of the day such as 18:00-23:30, not '\(text)'")
            }
        }
    }
}
