/// The formats of endless bodies that a viewer can join in the middle.
package enum StreamFormat: String, Sendable, CaseIterable {
    /// MPEG transport stream.
    case transport
    /// MPEG audio or AAC frames.
    case audio
}

/// Finds where decoding can begin in a stream of either format.
package enum StreamScanner: Sendable {
    case transport(TransportScanner)
    case audio(AudioScanner)

    /// Bytes before the next one that access points may refer to.
    package static let reach = TransportScanner.reach

    package init(_ format: StreamFormat) {
        switch format {
        case .transport: self = .transport(TransportScanner())
        case .audio: self = .audio(AudioScanner())
        }
    }

    /// True once the bytes were found to have the format.
    package var isRecognised: Bool {
        switch self {
        case .transport(let scanner): scanner.isRecognised
        case .audio(let scanner): scanner.isRecognised
        }
    }

    /// True while the bytes look like the format.
    package var isPlausible: Bool {
        switch self {
        case .transport(let scanner): scanner.isLocked
        case .audio(let scanner): scanner.isRecognised
        }
    }

    /// The time that the stream's own clock has advanced.
    package var clock: StreamClock {
        switch self {
        case .transport(let scanner): scanner.clock
        case .audio(let scanner): scanner.clock
        }
    }

    /// The bytes that a viewer needs before it can decode from an access point.
    package var tables: [UInt8] {
        switch self {
        case .transport(let scanner): scanner.tables
        case .audio: []
        }
    }

    /// The offset of the last packet of a transport stream, if any was found.
    package var lastPacket: Int64? {
        switch self {
        case .transport(let scanner): scanner.lastPacket
        case .audio: nil
        }
    }

    /// Returns how many bytes complete the packet that an offset lies in.
    package func bytesToBoundary(from offset: Int64) -> Int {
        switch self {
        case .transport(let scanner): scanner.bytesToBoundary(from: offset)
        case .audio: 0
        }
    }

    /// Takes the next bytes of the stream.
    package mutating func take(_ bytes: Span<UInt8>) {
        switch self {
        case .transport(var scanner):
            // Moved out for the change, so that no array is copied.
            self = .audio(AudioScanner())
            scanner.take(bytes)
            self = .transport(scanner)
        case .audio(var scanner):
            self = .audio(AudioScanner())
            scanner.take(bytes)
            self = .audio(scanner)
        }
    }

    /// Removes and returns the offsets at which decoding can begin, found since the last call.
    package mutating func takeAccessPoints() -> [Int64] {
        switch self {
        case .transport(var scanner):
            guard !scanner.accessPoints.isEmpty else { return [] }
            let points = scanner.accessPoints
            scanner.accessPoints = []
            self = .transport(scanner)
            return points
        case .audio(var scanner):
            guard !scanner.accessPoints.isEmpty else { return [] }
            let points = scanner.accessPoints
            scanner.accessPoints = []
            self = .audio(scanner)
            return points
        }
    }

    /// Counts all offsets from another start.
    package mutating func shift(by distance: Int64) {
        switch self {
        case .transport(var scanner):
            scanner.shift(by: distance)
            self = .transport(scanner)
        case .audio(var scanner):
            scanner.shift(by: distance)
            self = .audio(scanner)
        }
    }
}
