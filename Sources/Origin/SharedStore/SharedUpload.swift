import Posix
import Store

/// An object on its way.
final class SharedUpload {
    let candidate: SharedCandidate
    private let object: StoredObject
    /// Preamble and header.
    private let start: [UInt8]
    /// The length of the object in the bucket.
    let length: Int64
    /// The number of the upload in parts; nil for one request.
    var number: String?
    /// The tags of the parts that were sent.
    var tags: [String] = []

    init(candidate: SharedCandidate, object: StoredObject, start: [UInt8], length: Int64) {
        self.candidate = candidate
        self.object = object
        self.start = start
        self.length = length
    }

    /// Reads bytes of the object as it is in the bucket; blocks on the disk.
    ///
    /// - Returns: nil if they cannot be read.
    func bytes(from offset: Int64, count: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        if offset < Int64(start.count) { bytes += start[Int(offset)...].prefix(count) }
        let rest = count - bytes.count
        guard rest > 0 else { return bytes }
        let first = offset + Int64(bytes.count) - Int64(start.count)
        guard let body = try? object.readBody(from: first, count: rest), body.count == rest else {
            return nil
        }
        return bytes + body
    }
}
