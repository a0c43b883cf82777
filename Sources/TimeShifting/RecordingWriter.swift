import CachePolicy
import Glibc
import HLS
import HTTP
import Library
package import Model
import Playlists
package import Posix
import Retention
import Routing
import Store
import Synchronization
package import URISyntax

/// Stores playlists that Sluice has made, so that a recording plays like any stored title.
extension TimeShiftServices {
    /// Stores a playlist under the key that a session looks up; blocks on the disk.
    ///
    /// - Parameters:
    ///   - body: the playlist.
    ///   - url: its URL.
    ///   - base: the base of its references.
    ///   - session: the session that it belongs to.
    /// - Throws: `SystemError` if there is no room for it.
    package func store(
        playlist body: [UInt8], at url: AbsoluteURL, base: AbsoluteURL, of session: Session
    ) throws(SystemError) {
        let text = names.cacheKey(url, session: session, role: .playlist).text
        let now = WallTime.now()
        var fields = Fields()
        fields.append(.contentType, ContentTypes.playlist)
        let head = StoredHead(
            status: .ok, fields: fields, requestTime: now, responseTime: now,
            finalURL: base.withoutUserinfo.text, isPlaylist: true)
        let object = try store.create(
            ObjectDescription(
                key: ObjectKey(sha256Of: text), url: text, role: ResourceRole.playlist.letter,
                head: head.encoded, total: Int64(body.count), created: now, isStorable: true,
                title: session.id.number, kind: .structure))
        guard object.isStorable else {
            throw SystemError("create", code: ENOSPC, subject: "the store has no room")
        }
        var writer = FillWriter(object, from: 0, to: Int64(body.count))
        let failure: SystemError? = body.withUnsafeBytes { bytes in
            do throws(SystemError) {
                try writer.append(bytes)
                return nil
            } catch {
                return error
            }
        }
        if let failure {
            writer.end(failure: failure)
            throw failure
        }
        writer.end(failure: nil)
        try store.publish(object)
        store.finish(object)
    }
}

extension Recording {
    /// Returns the comment line with a title's name.
    static func titleLine(_ name: String) -> [UInt8] { Array("\(TitleName.comment)\(name)\n".utf8) }

    /// Returns `body` with the recording's name in its second line.
    package func named(_ body: [UInt8]) -> [UInt8] {
        guard let name = order.name, let end = body.firstIndex(of: 0x0A) else { return body }
        return Array(body[...end]) + Self.titleLine(name) + Array(body[(end + 1)...])
    }

    /// Returns the entry reduced to the given playlists; nil if none of its variants remains.
    func filtered(_ found: FetchedPlaylist, to urls: Set<AbsoluteURL>) -> [UInt8]? {
        let result = MultivariantFilter.filter(found.list) { reference in
            reference.role == .playlist && urls.contains(reference.url)
        }
        guard result.isPlayable else { return nil }
        return named(result.bytes)
    }

    /// A finished list of a recording.
    struct Finished {
        package let url: AbsoluteURL
        package let bytes: [UInt8]
        package let segments: Int
        let lost: Int
        let seconds: Double
    }

    /// Writes every list as a finished playlist; blocks on the disk.
    func finishedLists() -> [Finished] {
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
                lost: shift.segments.count - kept.count, seconds: seconds)
        }
    }
}
