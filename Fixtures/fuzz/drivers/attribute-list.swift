// Fuzzes attribute lists: every attribute lies within the input, in order, and lookup finds it.
import HLS

/// Splits one input into attributes (called by libFuzzer).
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOne(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: start, count: count))
    let list = AttributeList(input, in: 0..<input.count)
    var end = 0
    for attribute in list {
        precondition(attribute.name.lowerBound >= end, "attributes overlap")
        precondition(attribute.value.lowerBound >= attribute.name.upperBound, "the value is before")
        end = attribute.value.upperBound
        precondition(end <= input.count, "an attribute is outside")
        let value = input[attribute.value]
        precondition(!attribute.isQuoted || !value.contains(0x22), "a quote is inside quotes")
        precondition(attribute.isQuoted || attribute.isTerminated, "bare values have no quotes")
        precondition(attribute.isQuoted || !value.contains(0x2C), "a comma is in a bare value")
        let name = input[attribute.name]
        if name.allSatisfy({ $0 < 0x80 }) {
            let text = String(decoding: name, as: UTF8.self)
            precondition(list.first(text) != nil, "an attribute is not found by its name")
        }
    }
    return 0
}
