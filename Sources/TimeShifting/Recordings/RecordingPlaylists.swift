import HLS
import Library
import Logging
import Model
import Numbers
import Playlists
import Posix
import Synchronization
import URISyntax

/// The playlists of a recording as they are stored: reduced to what it has, and with its name.
struct RecordingPlaylists {
    let order: RecordingOrder
    let session: Session
    let services: TimeShiftServices

    /// Returns the comment line with a title's name.
    static func titleLine(_ name: String) -> [UInt8] { Array("\(TitleName.comment)\(name)\n".utf8) }

    /// Returns `body` with the recording's name in its second line.
    private func named(_ body: [UInt8]) -> [UInt8] {
        guard let name = order.name, let end = body.firstIndex(of: 0x0A) else { return body }
        return Array(body[...end]) + Self.titleLine(name) + Array(body[(end + 1)...])
    }

    /// Returns the entry reduced to the given playlists; nil if none of its variants remains.
    func filtered(_ found: FetchedPlaylist, to urls: Set<AbsoluteURL>) -> [UInt8]? {
        let result = MultivariantFilter.filter(found.list) { reference in
            reference.role == .playlist && urls.contains(reference.url)
        } movedStart: { _ in
            // That of a live stream leads to the end of the recording.
            nil
        }
        guard result.isPlayable else { return nil }
        return named(result.bytes)
    }

    /// A finished list of a recording.
    struct Finished {
        let url: AbsoluteURL
        let bytes: [UInt8]
        let segments: Int
        let lost: Int
        let seconds: Double
        /// How many of the lost ones were dropped since a list has no room for more.
        var dropped = 0
    }

    /// True for a text that may be the result of `finished`; the list of a live stream is none.
    static func isFinished(_ body: [UInt8]) -> Bool {
        let list = try? Playlist(body, base: nil, PlaylistReading(limits: .own))
        return list?.summary.playlistType == .vod && list?.summary.hasEndList == true
    }

    /// Writes every list as a finished playlist; blocks on the disk.
    func finished() -> [Finished] {
        order.lists.compactMap { chosen in
            let list = services.timeShift.list(chosen.url, of: session)
            list.verify(services.timeShift, all: true)
            let (shift, missing) = list.state.withLock { ($0.shift, $0.missing.union($0.open)) }
            let bytes = shift.playlist(ending: .recorded) { !missing.contains($0.number) }
            let kept = shift.segments.filter { !$0.isGap && !missing.contains($0.number) }
            guard !bytes.isEmpty, !kept.isEmpty else { return nil }
            let seconds = kept.reduce(Duration.zero) { $0 + $1.duration } / .seconds(1)
            return Finished(
                url: chosen.url, bytes: named(bytes), segments: kept.count,
                lost: shift.lostCount.addingSaturated(shift.segments.count - kept.count),
                seconds: seconds, dropped: shift.droppedCount)
        }
    }

    /// Removes the windows of an ended recording from memory, and their files but for those with
    /// marks, which identify the stored resources; blocks on the disk.
    ///
    /// A window that the disk does not take now stays in memory as an unsaved one, which the keeper
    /// saves; until then its file is the one that was saved while the recording ran.
    func forgetWindows() {
        let table = services.timeShift
        for chosen in order.lists {
            let list = table.list(chosen.url, of: session)
            guard !list.isUnread else { continue }
            let (files, name) = (table.files(of: session), table.name(of: chosen.url, in: session))
            let shift = list.shift
            guard shift.segments.contains(where: { $0.marks != .init() }) else {
                table.forget(list)
                files.remove(name)
                continue
            }
            do throws(SystemError) {
                try files.save(shift, name)
                table.forget(list)
            } catch {
                list.state.withLock { $0.isUnsaved = true }
                services.log.error(
                    "the window of an ended recording could not be saved; it is tried again",
                    metadata: ["id": "\(order.id)", "error": "\(error)"])
            }
        }
    }
}
