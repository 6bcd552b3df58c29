/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * Graphs and their executables. A launch gives each branch a stream of its
 * own, between two marks in the stream it is launched to; launches of one
 * executable follow each other, those of two do not. User objects die with
 * the last graph or executable that has them, after its last launch.
 */
#include "soft.h"

#include <stdlib.h>
#include <string.h>

struct CUgraphNode_st {
    hce_cu_enum_t type;
};

struct CUgraphExec_st {
    struct CUgraph_st *graph;   /* a copy */
    struct CUstream_st **lanes; /* by node */
    struct CUstream_st *last;   /* where and when its last launch ends */
    uint64_t last_seq;
};

struct CUgraph_st *soft_graph_make(void)
{
    struct CUgraph_st *graph = calloc(1, sizeof(*graph));

    if (graph == NULL)
        soft_die("no memory");
    soft_count_live(&soft_counters.graphs, 1);
    return graph;
}

static hce_cu_enum_t type_of(const soft_op_t *op)
{
    switch (op->kind) {
    case SOFT_OP_COPY:
        return HCE_CU_NODE_MEMCPY;
    case SOFT_OP_MEMOP:
        return HCE_CU_NODE_BATCH_MEMOP;
    default:
        return HCE_CU_NODE_EMPTY;
    }
}

size_t soft_graph_add(struct CUgraph_st *graph, soft_op_t *op, int dev,
                      const size_t *deps, size_t num_deps)
{
    size_t num = graph->num_nodes;
    soft_node_t *nodes =
        realloc(graph->nodes, (num + 1) * sizeof(*graph->nodes));
    struct CUgraphNode_st *handle = malloc(sizeof(*handle));

    if (nodes == NULL || handle == NULL)
        soft_die("no memory");
    handle->type = type_of(op);
    nodes[num] = (soft_node_t){.handle = handle,
                               .op = op,
                               .dev = dev,
                               .deps = soft_heads_copy(deps, num_deps),
                               .num_deps = num_deps};
    graph->nodes = nodes;
    graph->num_nodes = num + 1;
    return num;
}

static void nodes_free(struct CUgraph_st *graph)
{
    size_t i;

    for (i = 0; i < graph->num_nodes; i++) {
        soft_op_free(graph->nodes[i].op);
        free(graph->nodes[i].deps);
        free(graph->nodes[i].handle);
    }
    free(graph->nodes);
}

/* Of a capture that failed: its user objects go, too, but not under the
 * lock; they are told on a thread of their own. */
static void *objects_put(void *arg)
{
    struct CUgraph_st *graph = arg;
    size_t i;

    for (i = 0; i < graph->num_objects; i++)
        soft_user_object_put(graph->objects[i], 1);
    free(graph->objects);
    free(graph);
    return NULL;
}

static void objects_put_later(struct CUgraph_st *graph)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, objects_put, graph) != 0)
        soft_die("no thread");
    pthread_detach(thread);
}

void soft_graph_unmake(struct CUgraph_st *graph)
{
    nodes_free(graph);
    soft_count_live(&soft_counters.graphs, -1);
    objects_put_later(graph);
}

soft_result_t soft_graph_destroy(hce_cu_graph_t graph)
{
    static soft_site_t site = {.name = "cuGraphDestroy", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (graph == NULL)
        return HCE_CU_INVALID_VALUE;
    nodes_free(graph);
    soft_count_live(&soft_counters.graphs, -1);
    objects_put(graph);
    return HCE_CU_OK;
}

/* Each node in the lane of its first predecessor that has no other follower
 * there yet, else in a new one. */
static void lanes_choose(struct CUgraphExec_st *exec)
{
    const struct CUgraph_st *graph = exec->graph;
    bool *is_taken = calloc(graph->num_nodes + 1, 1);
    size_t i, j, dep;

    if (is_taken == NULL)
        soft_die("no memory");
    for (i = 0; i < graph->num_nodes; i++) {
        for (j = 0; j < graph->nodes[i].num_deps; j++) {
            dep = graph->nodes[i].deps[j];
            if (!is_taken[dep] && graph->nodes[dep].dev == graph->nodes[i].dev)
                break;
        }
        if (j < graph->nodes[i].num_deps) {
            exec->lanes[i] = exec->lanes[dep];
            is_taken[dep] = true;
        } else {
            exec->lanes[i] = soft_stream_make(graph->nodes[i].dev,
                                              HCE_CU_STREAM_NON_BLOCKING);
        }
    }
    free(is_taken);
}

static void graph_copy(const struct CUgraph_st *from, struct CUgraph_st *to)
{
    size_t i;

    for (i = 0; i < from->num_nodes; i++)
        soft_graph_add(to, soft_op_clone(from->nodes[i].op),
                       from->nodes[i].dev, from->nodes[i].deps,
                       from->nodes[i].num_deps);
    to->objects = calloc(from->num_objects + 1, sizeof(*to->objects));
    if (to->objects == NULL)
        soft_die("no memory");
    for (i = 0; i < from->num_objects; i++) {
        to->objects[i] = from->objects[i];
        to->objects[i]->refs++;
    }
    to->num_objects = from->num_objects;
}

soft_result_t soft_graph_instantiate(hce_cu_graph_exec_t *exec_p,
                                     hce_cu_graph_t graph,
                                     unsigned long long flags)
{
    static soft_site_t site = {.name = "cuGraphInstantiateWithFlags",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUgraphExec_st *exec;

    if (result != HCE_CU_OK)
        return result;
    if (graph == NULL || flags > 1)
        return HCE_CU_INVALID_VALUE;
    exec = calloc(1, sizeof(*exec));
    if (exec == NULL)
        return HCE_CU_OUT_OF_MEMORY;
    pthread_mutex_lock(&soft_lock);
    exec->graph = soft_graph_make();
    graph_copy(graph, exec->graph);
    exec->lanes = calloc(graph->num_nodes + 1, sizeof(*exec->lanes));
    if (exec->lanes == NULL)
        soft_die("no memory");
    lanes_choose(exec);
    pthread_mutex_unlock(&soft_lock);
    soft_count_live(&soft_counters.graphs, -1);
    soft_count_live(&soft_counters.execs, 1);
    *exec_p = exec;
    return HCE_CU_OK;
}

/* Caller holds soft_lock. */
static void launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
    const struct CUgraph_st *graph = exec->graph;
    soft_op_t *begin = soft_op_make(SOFT_OP_MARK, 0);
    soft_op_t *end = soft_op_make(SOFT_OP_MARK, 0), *op;
    uint64_t *seqs = calloc(graph->num_nodes + 1, sizeof(*seqs)), first;
    size_t i, j;

    if (seqs == NULL)
        soft_die("no memory");
    if (exec->last != NULL)
        soft_op_depend(begin, exec->last, exec->last_seq);
    soft_enqueue(stream, begin);
    first = stream->issued;
    for (i = 0; i < graph->num_nodes; i++) {
        op = soft_op_clone(graph->nodes[i].op);
        soft_op_depend(op, stream, first);
        for (j = 0; j < graph->nodes[i].num_deps; j++)
            soft_op_depend(op, exec->lanes[graph->nodes[i].deps[j]],
                           seqs[graph->nodes[i].deps[j]]);
        soft_enqueue(exec->lanes[i], op);
        seqs[i] = exec->lanes[i]->issued;
        soft_op_depend(end, exec->lanes[i], seqs[i]);
    }
    soft_enqueue(stream, end);
    exec->last = stream;
    exec->last_seq = stream->issued;
    free(seqs);
}

soft_result_t soft_graph_launch(hce_cu_graph_exec_t exec,
                                hce_cu_stream_t handle)
{
    static soft_site_t site = {.name = "cuGraphLaunch", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUstream_st *stream;

    if (result != HCE_CU_OK)
        return result;
    pthread_mutex_lock(&soft_lock);
    stream = soft_stream(handle);
    if (stream == NULL || exec == NULL)
        result = HCE_CU_INVALID_HANDLE;
    else if (stream->capture != NULL)
        result = HCE_CU_CAPTURE_UNSUPPORTED;
    else
        result = soft_legacy_check(stream);
    if (result == HCE_CU_OK)
        launch(exec, stream);
    pthread_mutex_unlock(&soft_lock);
    if (result == HCE_CU_OK)
        soft_count(&soft_counters.graph_launches, 1);
    return result;
}

/* After the last launch has come to its end. */
static void *exec_free(void *arg)
{
    struct CUgraphExec_st *exec = arg;
    size_t i;

    pthread_mutex_lock(&soft_lock);
    while (exec->last != NULL && exec->last->done < exec->last_seq)
        pthread_cond_wait(&soft_news, &soft_lock);
    for (i = 0; i < exec->graph->num_nodes; i++)
        soft_stream_unmake(exec->lanes[i]);
    pthread_mutex_unlock(&soft_lock);
    nodes_free(exec->graph);
    objects_put(exec->graph);
    free(exec->lanes);
    free(exec);
    soft_count_live(&soft_counters.execs, -1);
    return NULL;
}

soft_result_t soft_graph_exec_destroy(hce_cu_graph_exec_t exec)
{
    static soft_site_t site = {.name = "cuGraphExecDestroy",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    pthread_t thread;

    if (result != HCE_CU_OK)
        return result;
    if (exec == NULL)
        return HCE_CU_INVALID_VALUE;
    if (pthread_create(&thread, NULL, exec_free, exec) != 0)
        soft_die("no thread");
    pthread_detach(thread);
    return HCE_CU_OK;
}

soft_result_t soft_graph_get_nodes(hce_cu_graph_t graph,
                                   hce_cu_graph_node_t *nodes, size_t *num)
{
    static soft_site_t site = {.name = "cuGraphGetNodes", .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    size_t i;

    if (result != HCE_CU_OK)
        return result;
    if (graph == NULL || num == NULL)
        return HCE_CU_INVALID_VALUE;
    for (i = 0; nodes != NULL && i < *num; i++)
        nodes[i] = i < graph->num_nodes ? graph->nodes[i].handle : NULL;
    *num = graph->num_nodes;
    return HCE_CU_OK;
}

soft_result_t soft_graph_node_get_type(hce_cu_graph_node_t node,
                                       hce_cu_enum_t *type_p)
{
    static soft_site_t site = {.name = "cuGraphNodeGetType",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result != HCE_CU_OK)
        return result;
    if (node == NULL)
        return HCE_CU_INVALID_VALUE;
    *type_p = node->type;
    return HCE_CU_OK;
}

soft_result_t soft_user_object_create(hce_cu_user_object_t *object_p,
                                      void *ptr, hce_cu_host_fn_t destroy,
                                      unsigned int refs, unsigned int flags)
{
    static soft_site_t site = {.name = "cuUserObjectCreate",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUuserObject_st *object;

    if (result != HCE_CU_OK)
        return result;
    if (destroy == NULL || refs == 0 || flags != HCE_CU_USER_OBJECT_NO_SYNC)
        return HCE_CU_INVALID_VALUE;
    object = malloc(sizeof(*object));
    if (object == NULL)
        return HCE_CU_OUT_OF_MEMORY;
    *object = (struct CUuserObject_st){ptr, destroy, refs};
    *object_p = object;
    return HCE_CU_OK;
}

void soft_user_object_put(struct CUuserObject_st *object, unsigned count)
{
    bool is_last;

    pthread_mutex_lock(&soft_lock);
    if (count > object->refs)
        soft_die("a user object has too few references");
    object->refs -= count;
    is_last = object->refs == 0;
    pthread_mutex_unlock(&soft_lock);
    if (!is_last)
        return;
    object->destroy(object->ptr);
    free(object);
}

soft_result_t soft_user_object_release(hce_cu_user_object_t object,
                                       unsigned int count)
{
    static soft_site_t site = {.name = "cuUserObjectRelease",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);

    if (result == HCE_CU_OK)
        soft_user_object_put(object, count);
    return result;
}

soft_result_t soft_graph_retain_user_object(hce_cu_graph_t graph,
                                            hce_cu_user_object_t object,
                                            unsigned int count,
                                            unsigned int flags)
{
    static soft_site_t site = {.name = "cuGraphRetainUserObject",
                               .need = SOFT_INIT};
    soft_result_t result = soft_enter(&site);
    struct CUuserObject_st **objects;

    if (result != HCE_CU_OK)
        return result;
    if (graph == NULL || object == NULL || count != 1 ||
        flags > HCE_CU_GRAPH_USER_OBJECT_MOVE)
        return HCE_CU_INVALID_VALUE;
    pthread_mutex_lock(&soft_lock);
    objects =
        realloc(graph->objects, (graph->num_objects + 1) * sizeof(*objects));
    if (objects == NULL)
        soft_die("no memory");
    objects[graph->num_objects++] = object;
    graph->objects = objects;
    object->refs += flags == 0;
    pthread_mutex_unlock(&soft_lock);
    return HCE_CU_OK;
}
