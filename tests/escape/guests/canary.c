/* SPDX-License-Identifier: Apache-2.0
 *
 * D044: a library that leaves a line in /workspace/output/loaded for each process that loads it. */
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void tell(void)
{
	char line[32];
	int fd = open("/workspace/output/loaded", O_WRONLY | O_CREAT | O_APPEND, 0600);
	int len = snprintf(line, sizeof(line), "%d\n", (int)getpid());

	if (fd >= 0) {
		(void)!write(fd, line, (size_t)len);
		close(fd);
	}
}
