// Fuzzes two to five successive reloads of a live playlist through all pure code that keeps state
// from the previous reload: see Tests/LookaheadTests/ReadingSequences.swift.
import Glibc
import HLS
import Lookahead

/// Runs the reloads encoded in one input (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: start, count: count)
    if let fault = ReadingSequences.fault(FuzzedReadings(input)) {
        // An optimised build omits the message of a failed precondition.
        print("fault: \(fault)")
        fflush(nil)
        preconditionFailure(fault)
    }
    return 0
}
