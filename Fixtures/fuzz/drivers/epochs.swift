// Fuzzes the state of live playlists in memory and on disk: see
// Tests/ModelTests/EpochSequences.swift.
import Glibc

/// Runs the sequence encoded in one input (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: start, count: count)
    if let fault = EpochSequences.fault(FuzzedReadings(input)) {
        // An optimised build omits the message of a failed precondition.
        print("fault: \(fault)")
        fflush(nil)
        preconditionFailure(fault)
    }
    return 0
}
