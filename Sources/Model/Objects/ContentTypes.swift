// Content types of responses: by role in the playlist, the origin's statement and the file name.
import HLS
package import HTTP

/// Content types by role, for resources that the origin mislabels.
package enum ContentTypes {
    package static let playlist = "application/vnd.apple.mpegurl"
    /// The type of lists without a tag of HLS: VLC does not open such a list under the type of HLS.
    package static let channelList = "audio/mpegurl"

    /// True if the fields of a response have the type of a playlist and no content coding; encoded
    /// texts are not parsed under a mount.
    package static func isPlaylist(_ fields: Fields) -> Bool {
        guard !fields.contains(.contentEncoding), let type = MediaType.parse(fields) else {
            return false
        }
        return type.subtype.hasSuffix("mpegurl")
    }

    /// Returns the type of a media response.
    ///
    /// The role in the playlist takes precedence, then the origin's type, then the file name.
    /// Markup is never passed on as such, since it would run with our origin's rights.
    package static func media(_ resource: Resource, stated: String?) -> String {
        if resource.isMounted { return stated ?? "application/octet-stream" }
        switch resource.role {
        case .key?: return "application/octet-stream"
        case .subtitle?: return "text/vtt; charset=utf-8"
        case .json?: return "application/json"
        case .playlist?: return playlist
        default: break
        }
        if let stated, stated == "video/mp2t" || isMedia(stated) { return stated }
        return byName[resource.nameExtension] ?? fallback(resource.role)
    }

    /// True if a stated type is video, audio or an image; SVG is excluded, since it is markup and
    /// may contain scripts.
    private static func isMedia(_ stated: String) -> Bool {
        guard let type = MediaType(stated) else { return false }
        return ["video", "audio", "image"].contains(type.type) && type.subtype != "svg+xml"
    }

    private static func fallback(_ role: ResourceRole?) -> String {
        switch role {
        case .segment?, .part?: "video/mp2t"
        case .initialization?: "video/mp4"
        default: "application/octet-stream"
        }
    }

    private static let byName = [
        "ts": "video/mp2t", "m2ts": "video/mp2t", "mp4": "video/mp4", "m4s": "video/iso.segment",
        "m4v": "video/mp4", "cmfv": "video/mp4", "m4a": "audio/mp4", "cmfa": "audio/mp4",
        "aac": "audio/aac", "mp3": "audio/mpeg", "ac3": "audio/ac3", "ec3": "audio/eac3",
        "vtt": "text/vtt; charset=utf-8", "webvtt": "text/vtt; charset=utf-8",
        "key": "application/octet-stream",
        "jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png", "webm": "video/webm",
        "mkv": "video/x-matroska", "mov": "video/quicktime",
    ]
}
