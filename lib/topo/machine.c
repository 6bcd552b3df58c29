/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * The only user of hwloc. Reads the machine afresh each time: it is asked
 * once by a process. No state.
 */
#include <config.h>

#include "topo/machine.h"
#include "topo/topo.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef HCE_HAVE_HWLOC

#include <hwloc.h>
#include <hwloc/glibc-sched.h>

/* Plugins of hwloc for devices that are not asked for here. They load whole
 * stacks of drivers into the process, which stay there. */
static void plugins_leave_out(hwloc_topology_t topology)
{
    static const char *const names[] = {"cuda", "gl",     "levelzero",
                                        "nvml", "opencl", "rsmi"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        (void)hwloc_topology_set_components(
            topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, names[i]);
}

/* Devices cost time, and some PCI back-ends never free what they found: they
 * are looked at only where they can matter. */
static bool machine_open(bool with_devices, hwloc_topology_t *topology_p)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0)
        return false;
    plugins_leave_out(topology);
    hwloc_topology_set_io_types_filter(
        topology, with_devices ? HWLOC_TYPE_FILTER_KEEP_IMPORTANT
                               : HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology) != 0) {
        hwloc_topology_destroy(topology);
        return false;
    }
    *topology_p = topology;
    return true;
}

void hce_topo_describe(char *buf, size_t size)
{
    hwloc_topology_t topology;

    if (!machine_open(false, &topology)) {
        snprintf(buf, size, "hwloc cannot read this machine");
        return;
    }
    snprintf(buf, size, "packages %d, cores %d, threads %d, NUMA nodes %d",
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE),
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE),
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU),
             hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE));
    hwloc_topology_destroy(topology);
}

/* An RDMA device goes before an Ethernet interface. */
static hwloc_obj_t nic_find(hwloc_topology_t topology)
{
    static const hwloc_obj_osdev_type_t types[] = {HWLOC_OBJ_OSDEV_OPENFABRICS,
                                                   HWLOC_OBJ_OSDEV_NETWORK};

    for (int t = 0; t < 2; t++) {
        hwloc_obj_t osdev = NULL;

        while ((osdev = hwloc_get_next_osdev(topology, osdev)) != NULL)
            if (osdev->attr->osdev.type == types[t])
                return osdev;
    }
    return NULL;
}

static bool machine_is_uniform(void)
{
    hwloc_topology_t topology;
    int nodes;

    if (!machine_open(false, &topology))
        return true;
    nodes = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);
    hwloc_topology_destroy(topology);
    return nodes <= 1;
}

bool hce_topo_machine_nic_cpus(cpu_set_t *cpus_p, char *name, size_t size)
{
    hwloc_topology_t topology;
    hwloc_obj_t nic, near;
    bool is_near = false;

    if (machine_is_uniform() || !machine_open(true, &topology))
        return false;
    nic = nic_find(topology);
    near = nic != NULL ? hwloc_get_non_io_ancestor_obj(topology, nic) : NULL;
    if (near != NULL && near->parent != NULL) {
        CPU_ZERO(cpus_p);
        hwloc_cpuset_to_glibc_sched_affinity(topology, near->cpuset, cpus_p,
                                             sizeof(*cpus_p));
        snprintf(name, size, "%s", nic->name != NULL ? nic->name : "?");
        is_near = true;
    }
    hwloc_topology_destroy(topology);
    return is_near;
}

#else

void hce_topo_describe(char *buf, size_t size)
{
    snprintf(buf, size, "%ld threads (built without hwloc)",
             sysconf(_SC_NPROCESSORS_ONLN));
}

bool hce_topo_machine_nic_cpus(cpu_set_t *cpus_p, char *name, size_t size)
{
    return false;
}

#endif
