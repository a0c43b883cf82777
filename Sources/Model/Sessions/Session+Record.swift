// The records of sessions on the disk, the windows of sessions, and the remains of sessions whose
// recording was forgotten.
package import DurableState
package import HLS
import HTTP
import Routing
import Store

extension Session {
    /// The record of a session with headers, a shift or a limit.
    package var record: SessionRecord {
        SessionRecord(
            id: id.number, window: shift.window, recording: shift.recording,
            fields: fields.map { "\($0.name): \($0.value)\n" }.joined(), height: limit.height,
            bandwidth: limit.bandwidth)
    }

    package convenience init(_ record: SessionRecord) {
        var fields = Fields()
        for line in record.fields.utf8.split(separator: 0x0A) {
            _ = fields.append(line: Array(line)[...])
        }
        let window = record.window.flatMap { (1...WindowLength.longest).contains($0) ? $0 : nil }
        self.init(
            id: SessionID(record.id), fields: fields,
            shift: Shift(window: window, recording: record.recording),
            limit: VariantLimit(height: record.height, bandwidth: record.bandwidth))
    }
}

extension Session.Shift {
    /// How far back lists reach; nil for everything that was recorded.
    package var duration: Duration? { window.map { .seconds($0) } }

    package var limits: TimeShift.Limits {
        var limits = TimeShift.Limits()
        // A week of 4 s segments.
        if recording != nil { limits.segmentCount = 200_000 }
        return limits
    }
}

/// The remains of the session of a forgotten recording, without its headers.
///
/// It plays a recording that does not exist, so that its links do not lead to the live stream. A
/// digest stands for its credentials, since players' windows and other recordings may need keys
/// fetched with these credentials.
extension Session {
    /// The beginning of such a session's recording ID; no real recording has it.
    private static let mark = "-"

    /// True for the remains of a forgotten recording's session.
    var isForgotten: Bool { shift.recording?.utf8.first == Self.mark.utf8.first }

    /// True for the remains of a session that had no credentials: its decryption keys are open to
    /// all sessions.
    var hadNoCredentials: Bool { shift.recording == Self.mark }

    /// The remains of this session once its recording is forgotten.
    var forgotten: Session {
        let digest = hasCredentials ? credentialDigest(for: id) : ""
        return Session(id: id, fields: Fields(), shift: Shift(recording: Self.mark + digest))
    }

    /// True if this session has the credentials that a forgotten recording's session had, or if
    /// that one had none.
    func hasCredentials(ofForgotten other: Session) -> Bool {
        let digest = other.shift.recording?.dropFirst(Self.mark.count) ?? ""
        return digest.isEmpty || digest == credentialDigest(for: other.id)
    }

    private func credentialDigest(for id: SessionID) -> String {
        let values = [FieldName.authorization, .cookie].map { fields.combined($0) ?? "" }
        return ObjectKey(sha256Of: ([id.text] + values).joined(separator: "\n")).hex
    }
}
