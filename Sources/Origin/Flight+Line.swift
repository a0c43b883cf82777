import HLS
import Model
import Posix
import Upstream
import URISyntax

extension Flight {
    /// Notes how fast the line was, where a body came for a player and was never held back.
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
