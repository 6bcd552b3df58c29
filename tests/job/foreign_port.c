/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * A stranger on a port of 127.0.0.1: accepts, says nothing, keeps what
 * connects. Prints the port, and a line "called" for each caller; ends when
 * its standard input ends.
 */
#include <config.h>

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET};
    socklen_t len = sizeof(addr);
    struct pollfd fds[2] = {{.events = POLLIN}, {.events = POLLIN}};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (listener < 0 ||
        bind(listener, (struct sockaddr *)&addr, sizeof(addr)) != 0 ||
        listen(listener, 64) != 0 ||
        getsockname(listener, (struct sockaddr *)&addr, &len) != 0) {
        perror("foreign_port");
        return 1;
    }
    printf("%d\n", ntohs(addr.sin_port));
    fflush(stdout);
    fds[0].fd = STDIN_FILENO;
    fds[1].fd = listener;
    while (poll(fds, 2, -1) > 0) {
        if (fds[0].revents != 0)
            return 0;
        if (fds[1].revents == 0)
            continue;
        /* Kept open until the end: a peer that never answers. */
        if (accept(listener, NULL, NULL) < 0)
            return 1;
        printf("called\n");
        fflush(stdout);
    }
    return 1;
}
