import HLS
import Model
import Posix
import Upstream
import URISyntax

extension Flight {
    /// Measures the line's speed from a body that was fetched for a player and never paused.
    func measureLine(_ timings: TransferTimings) {
        guard table.settings.pace == .line, !machine.job.beganAhead,
            resource.role?.isExpress != true,
            timings.bytes <= table.settings.readAhead
        else { return }
        let body = timings.total.nanoseconds - timings.firstByte.nanoseconds
        table.lines.note(
            timings.bytes, within: Interval(nanoseconds: body), from: resource.url.host)
    }
}
