import CachePolicy
import HLS
import HTTP
import Model
import Posix
import Store

/// Stores a complete playlist, as a flight does.
func keepPlaylist(
    _ text: String, at url: String, in store: ObjectStore
) throws -> StoredObject {
    let head = StoredHead(
        status: .ok, fields: Fields(), requestTime: .now(), responseTime: .now(), finalURL: url,
        isPlaylist: true)
    let bytes = Array(text.utf8)
    let object = try store.create(
        ObjectDescription(
            key: ObjectKey(sha256Of: url), url: url, role: ResourceRole.playlist.letter,
            head: head.encoded, total: Int64(bytes.count), created: .now(), isStorable: true))
    try store.publish(object)
    var writer = FillWriter(object, from: 0, to: Int64(bytes.count))
    try bytes.withUnsafeBytes { try writer.append($0) }
    writer.end(failure: nil)
    store.finish(object)
    return object
}
