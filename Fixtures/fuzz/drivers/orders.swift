// Fuzzes the plans of downloads and the accounts of recordings: see
// Tests/LibraryTests/OrderSequences.swift.
import Glibc

/// Runs the sequence encoded in one input (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: start, count: count)
    if let fault = OrderSequences.fault(FuzzedReadings(input)) {
        // An optimised build omits the message of a failed precondition.
        print("fault: \(fault)")
        fflush(nil)
        preconditionFailure(fault)
    }
    return 0
}
