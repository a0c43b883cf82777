import CCurl
import Glibc
import HTTP
import Posix
import Reactor
import URISyntax

/// libcurl's callbacks of one transfer.
///
/// They run on the loop's thread inside libcurl: they pass on the data and return, and whatever
/// ends a transfer is deferred until libcurl has returned.
extension CurlEasy {
    /// Registers `transfer` with libcurl's callbacks; its client keeps it alive while it is
    /// attached.
    func setCallbacks(_ transfer: Transfer) {
        let context = Unmanaged.passUnretained(transfer).toOpaque()
        sluice_curl_set_header(handle, headerArrived, context)
        sluice_curl_set_write(handle, bytesArrived, context)
        sluice_curl_set_open_socket(handle, openSocket, context)
        sluice_curl_set_prerequest(handle, mayRequest, context)
    }
}

private func unmanaged(_ context: UnsafeMutableRawPointer?) -> Unmanaged<Transfer> {
    guard let context else { preconditionFailure("libcurl lost a transfer's context") }
    return Unmanaged.fromOpaque(context)
}

private func transfer(_ context: UnsafeMutableRawPointer?) -> Transfer {
    unmanaged(context).takeUnretainedValue()
}

/// CURLOPT_HEADERFUNCTION: one line with its line end; any result other than its length aborts.
private func headerArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes else { return 0 }
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer(context).take(headLine: Array(line)) ? line.count : -1
}

/// CURLOPT_WRITEFUNCTION: at most CURL_MAX_WRITE_SIZE (16 KiB) of the body.
private func bytesArrived(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int,
    _ context: UnsafeMutableRawPointer?
) -> Int {
    let body = UnsafeRawBufferPointer(start: bytes, count: size * count)
    // The client keeps it alive while libcurl runs, so no retain is needed for each call.
    return unmanaged(context)._withUnsafeGuaranteedRef { transfer in
        switch transfer.take(body: body) {
        case .taken: body.count
        case .held: 0x1000_0001  // CURL_WRITEFUNC_PAUSE
        case .aborted: body.count + 1
        }
    }
}

/// CURLOPT_OPENSOCKETFUNCTION: checks every address of every hop before it is connected to.
private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype,
    _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let address else { return -1 }
    let this = transfer(context)
    let peer = withUnsafePointer(to: &address.pointee.addr) { SocketAddress($0) }
    guard let peer, this.permits(peer), this.hasWay(to: peer) else { return -1 }
    let number = openStream(
        family: address.pointee.family,
        kind: address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue),
        isMultipath: this.usesMultipath(to: peer))
    // Read before another call can change it.
    let code = errno
    if number >= 0 {
        this.client?.sockets.insert(number)
    } else {
        this.note(refusedSocket: code)
    }
    return number
}

/// CURLOPT_PREREQFUNCTION: checks the peer of the connection that a request is about to use, new or
/// reused.
private func mayRequest(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?,
    _ local: UnsafeMutablePointer<CChar>?, _ peerPort: CInt, _ localPort: CInt
) -> CInt {
    let this = transfer(context)
    guard let peer,
        let address = SocketAddress(
            host: String(cString: peer), port: UInt16(truncatingIfNeeded: peerPort)),
        this.permits(address),
        this.mayUse(connectionFrom: UInt16(truncatingIfNeeded: localPort))
    else { return 1 }  // CURL_PREREQFUNC_ABORT
    // After the check of kept connections, which takes a connection that is known for a used one.
    this.client?.mark(this)
    this.client?.yields?.requestBegins(this, to: address)
    return 0
}

// MARK: - Handling of callbacks

extension Transfer {
    enum Taken {
        case taken, held, aborted
    }

    fileprivate func permits(_ address: SocketAddress) -> Bool {
        guard let client else { return false }
        // It is the proxy's or the parent's, which the configuration names; the host passed
        // `permitsByName`.
        if route.proxy != nil || parent != nil { return true }
        // Given by hand, whatever it is.
        if route.addresses.contains(where: { $0.description == address.host }) { return true }
        if client.configuration.addressPolicy.permits(address, host: host) { return true }
        hopState.refusedAddress = address.host
        return false
    }

    /// False for an IPv6 address without a route, if IPv4 was tried before: it is left out.
    ///
    /// libcurl tells the errno of the last address. Many machines have no route for IPv6, which
    /// would hide whether the origin refused over IPv4 or a router could not reach it.
    fileprivate func hasWay(to address: SocketAddress) -> Bool {
        if address.family == AF_INET { hopState.hasTriedIPv4 = true }
        // Where the configuration names the interface, that one's routes count.
        guard address.family == AF_INET6, hopState.hasTriedIPv4, route.interface == nil else {
            return true
        }
        // A link-local address has its route by its zone, which is not known here.
        return address.bytes.starts(with: [0xFE, 0x80]) || hasRoute(to: address)
    }

    /// False where the configuration names the interface: the kernel would add paths over others.
    fileprivate func usesMultipath(to address: SocketAddress) -> Bool {
        guard let client, route.interface == nil else { return false }
        return client.configuration.multipath.connects(to: address)
    }

    /// False where the connection is a kept one that cannot be trusted with this request.
    ///
    /// Not for HTTP/2, which always has something to read, and where responses identify their
    /// request.
    fileprivate func mayUse(connectionFrom localPort: UInt16) -> Bool {
        guard let client else { return false }
        if client.configuration.dohURL != nil { easy?.stopListening() }
        if request.connectsOnly {
            client.connected(self, localPort: localPort)
            return true
        }
        // libcurl repeats a request that got no response on a kept connection: once is enough.
        hopState.requests += 1
        if hopState.requests > 1 { delegate?.transferIsRepeated(self) }
        // One that must not be repeated has a new connection, on which libcurl 7.88 may still
        // repeat it after an earlier transfer of the handle was refused (`refused_stream`).
        let most = request.usesFreshConnection ? 1 : 2
        guard hopState.requests <= most else { return abort(.reset) }
        noteHandshake()
        client.endScouting(by: self)
        if client.join(self, connectionFrom: localPort) { return true }
        guard !client.versions.isMultiplexing(origin) else { return true }
        // A new connection is noted by this, for the requests that follow on it.
        let hasInput = client.sockets.hasUnexpectedInput(localPort: localPort)
        guard !avoidsKeptConnections else { return true }
        let isTooOld = client.early.isTooOld(localPort: localPort, now: loop.now)
        isConnectionSpoilt = isTooOld || hasInput
        return !isConnectionSpoilt
    }

    /// Parses a line of a head or trailer; returns false to abort the transfer with `failure`, or
    /// without one to follow the redirect.
    fileprivate func take(headLine line: [UInt8]) -> Bool {
        guard !isFailing, let client else { return false }
        // libcurl keeps every line, including trailers, while the transfer runs.
        hopState.fieldBytes += line.count
        let limit = client.configuration.maxHeadBytes
        guard hopState.fieldBytes <= limit else { return abort(.headTooLarge(limit: limit)) }
        // Trailers (RFC 9110 section 6.5) are not forwarded.
        guard case .head = hopState.phase else { return true }
        switch hopState.parser.take(line[...]) {
        case .malformed:
            return abort(.protocolError)
        case .more:
            return true
        case .complete:
            guard !hopState.parser.status.isInformational else {
                client.interimArrived(self)
                return !isFailing
            }
            client.headArrived(self)
            // Nothing of the body is needed, and the origin may leave such a connection open: the
            // hop ends here, as one with too long a body does.
            if case .redirect = hopState.phase, !provesItsEnd { return false }
            return !isFailing
        }
    }

    fileprivate func take(body bytes: UnsafeRawBufferPointer) -> Taken {
        // What libcurl held for a transfer that is being removed has no receiver any more.
        guard !isFailing, easy != nil else { return .aborted }
        if hopState.phase == .redirect || hopState.phase == .rest { return discard(bytes) }
        guard !bytes.isEmpty else { return .taken }
        if isPaused { return hold() }
        guard bytesReceived + Int64(bytes.count) <= hopState.bodyLimit else {
            _ = abort(.tooLarge(limit: hopState.bodyLimit))
            return .aborted
        }
        delegate?.transfer(self, didReceive: bytes)
        bytesReceived += Int64(bytes.count)
        if bytesReceived >= endBegins { client?.yields?.endBegins(of: self) }
        // The rest of a round changes nothing but the byte count.
        if !isDirty { client?.didReceiveBytes(self) }
        return isFailing ? .aborted : .taken
    }

    private func discard(_ bytes: UnsafeRawBufferPointer) -> Taken {
        hopState.lastByteAt = loop.now
        hopState.discarded += bytes.count
        delegate?.transfer(self, didDiscard: bytes.count)
        return hopState.discarded <= HopState.mostDiscarded ? .taken : .aborted
    }

    private func hold() -> Taken {
        hopState.lastByteAt = loop.now
        isReceivePaused = true
        return .held
    }

    private func abort(_ kind: UpstreamError.Kind) -> Bool {
        client?.fail(self, kind)
        return false
    }
}
