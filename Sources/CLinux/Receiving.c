// TCP_INFO, whose structure Glibc declares in an old form that ends before what is read here.
#include "CLinux.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

// SOL_MPTCP of linux/socket.h, and MPTCP_INFO of linux/mptcp.h, whose headers collide with glibc's.
enum { CLINUX_SOL_MPTCP = 284, CLINUX_MPTCP_INFO = 1 };

int clinux_receiving(int descriptor, struct clinux_receiving *receiving) {
    struct tcp_info info;
    memset(&info, 0, sizeof info);
    socklen_t length = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return -1;
    }
    // What a kernel does not know stays zero; without the bytes nothing can be measured.
    if (length < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received) {
        return -1;
    }
    receiving->round_trip = info.tcpi_rcv_rtt;
    receiving->sent_round_trip = info.tcpi_rtt;
    receiving->bytes = info.tcpi_bytes_received;
    receiving->packets = info.tcpi_data_segs_in;
    receiving->packet_size = info.tcpi_rcv_mss;
    receiving->out_of_order = info.tcpi_rcv_ooopack;
    return 0;
}

int clinux_retransmissions(int descriptor) {
    // A connection over several paths succeeds in this; it looks after its paths itself.
    char multipath[4];
    socklen_t size = sizeof multipath;
    if (getsockopt(descriptor, CLINUX_SOL_MPTCP, CLINUX_MPTCP_INFO, multipath, &size) == 0) {
        return -1;
    }
    struct tcp_info info;
    memset(&info, 0, sizeof info);
    socklen_t length = sizeof info;
    if (getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return -1;
    }
    return info.tcpi_unacked > 0 ? info.tcpi_retransmits : 0;
}
