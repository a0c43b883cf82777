/// Bodies in the gzip coding (RFC 1952), made with Python's gzip module.
enum Gzip {
    /// `#EXTM3U hello hello hello`.
    static let hello: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 83, 118, 141, 8, 241, 53, 14, 85, 200, 72, 205, 201,
        201, 71, 38, 1, 194, 63, 217, 129, 25, 0, 0, 0,
    ]
    /// 4000000 zero bytes in 3910.
    static let bomb: [UInt8] =
        [
            31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 237, 193, 1, 13, 0, 0, 0, 194, 160, 247, 79, 109, 15,
            7,
            20,
        ] + Array(repeating: 0, count: 3875) + [
            240, 110, 127, 42, 219, 207, 0, 9, 61, 0,
        ]
}
