// The form in which a response is stored, and what its head says of its body.
import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Upstream
import URISyntax

/// How responses for a resource are stored.
struct ResponseForm {
    /// Who sent a response.
    enum Source: Equatable {
        case origin
        case parent
        case sharedStore
    }

    let resource: Resource
    /// True once the body is known to be a playlist.
    let isPlaylist: Bool
    let source: Source
    let requestTime: WallTime
    let responseTime: WallTime
    /// True if the origin may have held the request until there was something new.
    var isHeld = false
    /// True if the origin may have recognized the viewer by a cookie.
    let hasViewerCookie: Bool
    /// What tells whose credentials the request had; nil without any.
    var user: String?

    /// The longest Cache-Status of a parent that is passed on, in bytes.
    static let longestStatus = 1_024

    /// Makes the stored form of a head.
    ///
    /// - Parameters:
    ///   - head: the head as received.
    ///   - layout: how the bytes of its body are placed in the object.
    /// - Returns: the stored form.
    func stored(_ head: TransferHead, _ layout: FlightMachine.Layout) -> StoredHead {
        let isPartOfWhole = head.status == .partialContent && layout != .opaque
        var fields = StoredHead.keptFields(of: head.fields, for: resource.kind)
        switch source {
        case .sharedStore: fields.set(.cacheStatus, "shared-store; hit")
        case .parent:
            if !resource.followsHTTP, let said = head.fields.combined(.cacheStatus),
                said.utf8.count <= Self.longestStatus
            {
                fields.set(.cacheStatus, said)
            }
        case .origin: break
        }
        if resource.followsHTTP {
            // The range of a part does not apply to the whole object.
            if isPartOfWhole { fields.remove(.contentRange) }
            // A recipient that forwards a response without Date adds it (RFC 9110 section 6.6.1).
            if !fields.contains(.date) {
                fields.append(.date, HTTPDate.format(responseTime.seconds))
            }
        }
        var stored = StoredHead(
            status: isPartOfWhole ? .ok : head.status, fields: fields,
            // What an origin sends at the end of a hold is not older for the hold: players that
            // find their place by Age would request lists too far ahead.
            requestTime: isHeld ? responseTime : requestTime,
            responseTime: responseTime, finalURL: head.finalURL.withoutUserinfo.text,
            isPlaylist: isPlaylist, kind: resource.kind,
            hasViewerCookie: isPlaylist && hasViewerCookie)
        if let user, isMarked(head) { stored.user = user }
        return stored
    }

    /// True if the stored head names the credentials of the request, so that requests with others,
    /// or without any, do not get the response.
    ///
    /// Playlists have them in their cache keys.
    private func isMarked(_ head: TransferHead) -> Bool {
        if resource.role == .key { return true }
        return !isPlaylist && resource.cacheKey.audience == .everyone
            && !Storability.allowsSharing(CacheControl(head.fields))
    }

    /// Tells whether the first bytes of a body decide whether it is a playlist, or a page in place
    /// of media.
    ///
    /// - Parameters:
    ///   - head: the stored form of the head.
    ///   - start: the offset of the first byte.
    /// - Returns: true if they do.
    func isSniffed(_ head: StoredHead, from start: Int64) -> Bool {
        guard start == 0, !resource.isVerbatim, head.status == .ok else { return false }
        // Captive portals also send pages as plain text or as video. Where HTTP's rules apply, a
        // page is passed on like anything else.
        if resource.role?.isMediaOfPlaylist == true {
            return !resource.followsHTTP && source != .sharedStore
        }
        return (resource.role.isOpen || isPlaylist) && !isPlainlyMedia(head)
            && (!resource.followsHTTP || !head.fields.contains(.contentEncoding))
    }

    /// True if file name and type agree that a resource not named by a playlist is media.
    ///
    /// The player then gets the head when it arrives, not with the first bytes, which may come much
    /// later.
    private func isPlainlyMedia(_ head: StoredHead) -> Bool {
        guard !isPlaylist, resource.isNamedAsMedia,
            let value = head.fields.valueBytes(.contentType)
        else { return false }
        let type = value.prefix { $0 != ASCII.semicolon && $0 != ASCII.space }
        return (Self.equals(type.prefix(6), Self.video) || Self.equals(type.prefix(6), Self.audio))
            && !Self.equals(type.suffix(7), Self.list)
    }

    private static let video = Array("video/".utf8)
    private static let audio = Array("audio/".utf8)
    private static let list = Array("mpegurl".utf8)

    /// Compares bytes with a lower-case text, ignoring case.
    private static func equals(_ bytes: ArraySlice<UInt8>, _ text: [UInt8]) -> Bool {
        ASCII.equalIgnoringCase(bytes.span, text.span)
    }

    /// True if an origin supports range requests (RFC 9110 section 14.3).
    static func acceptsRanges(_ fields: Fields) -> Bool {
        // The usual spelling is compared directly; only others need list parsing.
        guard let value = fields.valueBytes(.acceptRanges) else { return false }
        return value.elementsEqual(bytesUnit) || fields.listMembers(.acceptRanges).contains("bytes")
    }

    private static let bytesUnit = Array("bytes".utf8)
}
