#include "convert/plan.h"
tg_status tg_plan_folder(tg_plan *plan)
{
    return tg_fail(plan->err, TG_E_MODEL, tg_container_path(plan->in), "a folder cannot be converted yet");
}
