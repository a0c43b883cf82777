// Short bodies that come with their heads: their objects are made whole, in one write.
//
// The head of a short response waits for the end of the round, or for all of its body, if that comes
// before. Until then the flight asks, as far as everybody else can tell.
import Model
import HTTP
import Store
import Upstream

/// A head that waits for its body.
struct HeldHead {
    let head: TransferHead
    /// The length of the body, in bytes.
    let total: Int64
}

extension Flight {
    /// Whether a response from its first byte on is worth waiting a moment for.
    func mayComeAtOnce(_ head: TransferHead, _ length: Int64) -> Bool {
        object == nil && writer == nil && !isPlaylist && head.status == .ok
            && (1...Int64(StoredObject.shortLimit)).contains(length)
            && resource.live.growth == nil
    }

    /// Takes bytes of a body whose head waits.
    func hold(_ bytes: UnsafeRawBufferPointer) {
        guard let heldHead else { return }
        // No buffer for large pieces: many heads may wait at once.
        if gathered.capacity == 0 { gathered.reserveCapacity(Int(heldHead.total)) }
        gathered.append(contentsOf: bytes)
        if gathered.count >= heldHead.total { takeHeldHead() }
    }

    /// Begins with the head that waited, and with what has come of its body.
    func takeHeldHead() {
        guard let held = heldHead else { return }
        heldHead = nil
        begin(held.head, from: 0, to: nil, total: held.total)
        if writer == nil { gathered = [] } else { flush() }
    }

    /// The whole body, where it is here before the object is made and may be written with it.
    func heldBody(_ total: Int64?) -> [UInt8]? {
        guard let total, total == gathered.count, total > 0, !isSniffing, writer == nil else {
            return nil
        }
        return Array(gathered)
    }

    /// The end of what was written with a new object; nil where nothing was.
    ///
    /// What was gathered is in the file then.
    func takeWritten(_ former: StoredObject?) -> Int64? {
        guard let object, object !== former, !gathered.isEmpty, object.isComplete,
            object.total == Int64(gathered.count)
        else { return nil }
        gathered = []
        return object.total
    }
}
