extension BucketFixture {
    /// What is wrong with the store.
    package enum Fault: Sendable, Equatable {
        /// Answers begin after so many milliseconds.
        case slow(Int)
        /// All requests get this status.
        case refusing(Int)
        /// All requests get 404 with the code `NoSuchBucket`.
        case lackingBucket
        /// One bit of the last byte of each object that is read is wrong.
        case corrupting
        /// One bit in the middle of each object that is read is wrong.
        case corruptingMiddle
        /// Each read gets another object's bytes.
        case swapping
        /// Answers longer than so many bytes, head included, send the rest at 4 kB/s.
        case trickling(Int)
        /// Answers end after so many bytes of their body.
        case truncating(Int)
        /// Each stated length is so many bytes too small.
        case shortLength(Int)
        /// Ranges are ignored.
        case ignoringRanges
        /// Ranges come from somewhere else than they say.
        case shiftingRanges
        /// Writes are not read to their end, and not answered.
        case hangingWrites
        /// Lists are answered with an error.
        case refusingLists(Int)
        /// Writes are answered with an error.
        case refusingWrites(Int)
        /// Writes of more bytes than this get 403, as from a store with a rule against them.
        case refusingLongWrites(Int)
        /// Reads of objects with this text in their name are answered after so many milliseconds.
        case slowReads(String, Int)
        /// Reads of objects with this text in their name get this status.
        case refusingReads(String, Int)

        /// The milliseconds before an answer; nil for none.
        func delay(of request: WireRequest) -> Int? {
            switch self {
            case .slow(let milliseconds): milliseconds
            case .slowReads(let text, let milliseconds):
                request.method == "GET" && request.path.contains(text) ? milliseconds : nil
            default: nil
            }
        }

        /// The status of a read that is refused; nil for others.
        func refusal(ofRead request: WireRequest) -> Int? {
            guard case .refusingReads(let text, let status) = self, request.method == "GET",
                request.path.contains(text)
            else { return nil }
            return status
        }
    }

    /// What the store does with writes that are to make a new object (`If-None-Match: *`).
    package enum Conditions: Sendable {
        case kept
        /// 501, as OpenStack Swift answers.
        case refused
        case ignored
    }
}
